#include "server/coordinator/collectives/run_ranks.hpp"

#include <doctest/doctest.h>

using namespace chorus;
using namespace chorus::coordinator;

namespace {

api::Group group_of(std::vector<std::string> const& workers) {
  api::Group group;
  for (auto const& worker : workers) {
    auto& member = group.members.emplace_back();
    member.rank = static_cast<std::uint32_t>(group.members.size() - 1);
    member.worker = worker;
  }
  return group;
}

model::Wish wish_for(Op op, bool reproducible) {
  model::Wish wish;
  wish.op = op;
  wish.reproducible = reproducible;
  return wish;
}

// A tensor of each worker.
Admitted admitted_by(std::size_t workers) {
  Admitted admitted;
  admitted.versions.resize(workers);
  admitted.parts.resize(workers);
  admitted.tensors.resize(workers);
  admitted.devices.resize(workers);
  return admitted;
}

// Returns the run's rank of the group's rank 0, and the worker with rank 0 in the run.
std::pair<std::uint32_t, std::string> first_of(api::Group const& group, model::Wish const& wish) {
  api::Collective collective;
  auto const admitted = admitted_by(group.members.size());
  auto const request = RunRanks(group, wish).request(0, group, collective, admitted, "token", 1000);
  return {request.rank, request.members.at(0).worker};
}

// Returns the order of a worker with tensors on these devices.
std::string local_algorithm(std::string const& devices, void (*change)(api::Collective&)) {
  auto const group = group_of({"a"});
  api::Collective collective;
  collective.request.op = "all_reduce";
  collective.local_algorithm = "auto";  // as in the record if a rank has several GPUs
  change(collective);
  Admitted admitted;
  admitted.versions = {2};
  admitted.parts.resize(1);
  admitted.tensors = {2};
  admitted.devices = {devices};
  return RunRanks(group, wish_for(Op::all_reduce, collective.request.reproducible))
      .request(0, group, collective, admitted, "token", 1000)
      .local_algorithm;
}

}  // namespace

TEST_CASE("a worker may add tensors on several GPUs in any order, unless the request fixes the order or it matters") {
  auto const as_it_is = [](api::Collective&) {};
  CHECK(local_algorithm("cuda:0,cuda:1", as_it_is) == "ring");
  for (auto const* devices : {"cpu", "cuda:0", "cpu,cuda:1"})
    CHECK(local_algorithm(devices, as_it_is) == "centralized");
  CHECK(local_algorithm("cuda:0,cuda:1", [](api::Collective& collective) { collective.request.reproducible = true; }) ==
        "centralized");
  CHECK(local_algorithm("cuda:0,cuda:1", [](api::Collective& collective) {
          collective.request.local_algorithm = "centralized";
        }) == "centralized");
  CHECK(local_algorithm("cuda:0,cuda:1", [](api::Collective& collective) { collective.request.op = "broadcast"; }) ==
        "centralized");
}

TEST_CASE("in a reproducible run ranks follow the workers' names, not the ranks of the group") {
  auto const group = group_of({"c", "a", "b"});
  CHECK(first_of(group, wish_for(Op::all_reduce, false)) == std::pair(0U, std::string("c")));
  CHECK(first_of(group, wish_for(Op::all_reduce, true)) == std::pair(2U, std::string("a")));
  CHECK(first_of(group, wish_for(Op::reduce_scatter, true)) == std::pair(0U, std::string("c")));
  CHECK(first_of(group, wish_for(Op::broadcast, true)) == std::pair(0U, std::string("c")));
}

TEST_CASE("ranks in a worker's problem are reported as ranks of the group, in order") {
  auto const group = group_of({"c", "a", "b"});
  http::Problem problem(http::ProblemCode::peer_lost, "gone");
  problem.ranks = {0, 2};
  CHECK(RunRanks(group, wish_for(Op::all_reduce, true)).in_group_ranks(problem).ranks ==
        std::vector<std::uint32_t>{0, 1});
  CHECK(RunRanks(group, wish_for(Op::all_reduce, false)).in_group_ranks(problem).ranks ==
        std::vector<std::uint32_t>{0, 2});
}

TEST_CASE("workers are told the format that was decided for, and nothing where elements are sent") {
  auto const group = group_of({"a"});
  auto const told = [&](api::Compression wish, std::optional<std::string> decided) {
    api::Collective collective;
    collective.request.compression = std::move(wish);
    collective.wire_format = std::move(decided);
    return RunRanks(group, wish_for(Op::all_reduce, false))
        .request(0, group, collective, admitted_by(1), "token", 1000)
        .compression;
  };
  CHECK(told({"int8", "rack"}, std::nullopt)->format == "int8");
  auto const automatic = told({"auto", "rack", {{"bf16", "int8"}}}, "int8");
  REQUIRE(automatic.has_value());
  CHECK(automatic->format == "int8");
  CHECK(automatic->between == "rack");
  CHECK_FALSE(automatic->allow.has_value());
  CHECK_FALSE(told({"auto", {}}, std::nullopt).has_value());
}

TEST_CASE("segments have the size of the collective, else of the group, else the default") {
  auto group = group_of({"a"});
  auto const segment_bytes = [&](std::optional<std::uint64_t> asked) {
    api::Collective collective;
    collective.request.schedule.segment_bytes = asked;
    return RunRanks(group, wish_for(Op::all_reduce, false))
        .request(0, group, collective, admitted_by(1), "token", 1000)
        .schedule.segment_bytes;
  };
  CHECK(segment_bytes(std::nullopt) == 262144);  // groups of older journals have no size
  group.segment_bytes = 1048576;
  CHECK(segment_bytes(std::nullopt) == 1048576);
  CHECK(segment_bytes(65536) == 65536);
}

TEST_CASE("a run has the positions of its group, unless it takes the ranks in their order") {
  auto group = group_of({"a", "b", "c"});
  group.by_position = {2, 0, 1};
  auto const positions = [&group](std::string const& algorithm) {
    api::Collective collective;
    collective.request.op = "all_reduce";
    collective.algorithm = algorithm;
    return RunRanks(group, wish_for(Op::all_reduce, false))
        .request(0, group, collective, admitted_by(3), "token", 1000)
        .by_position;
  };
  CHECK(positions("ring") == group.by_position);
  CHECK_FALSE(positions("allpairs").has_value());
  group.by_position.reset();
  CHECK_FALSE(positions("ring").has_value());
}
