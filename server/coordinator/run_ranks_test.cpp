#include "server/coordinator/run_ranks.hpp"

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

// Rank 0 of the group, and who is rank 0 in its run.
std::pair<std::uint32_t, std::string> first_of(api::Group const& group, model::Wish const& wish) {
  api::Collective collective;
  Admitted admitted;
  admitted.versions.resize(group.members.size());
  admitted.parts.resize(group.members.size());
  admitted.tensors.resize(group.members.size());
  admitted.devices.resize(group.members.size());
  auto const request = RunRanks(group, wish).request(0, group, collective, admitted, "token", 1000);
  return {request.rank, request.members.at(0).worker};
}

// What a worker with tensors there is told to do among them.
std::string local_algorithm(std::string const& devices, void (*change)(api::Collective&)) {
  auto const group = group_of({"a"});
  api::Collective collective;
  collective.request.op = "all_reduce";
  collective.local_algorithm = "auto";  // as in the record where some rank has several GPUs
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

TEST_CASE("a worker may add what it has on several GPUs in any order, but not where that was asked for or matters") {
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

TEST_CASE("in a reproducible run ranks go by the workers' names, whoever stands first in the group") {
  auto const group = group_of({"c", "a", "b"});
  CHECK(first_of(group, wish_for(Op::all_reduce, false)) == std::pair(0U, std::string("c")));
  CHECK(first_of(group, wish_for(Op::all_reduce, true)) == std::pair(2U, std::string("a")));
  CHECK(first_of(group, wish_for(Op::reduce_scatter, true)) == std::pair(0U, std::string("c")));
  CHECK(first_of(group, wish_for(Op::broadcast, true)) == std::pair(0U, std::string("c")));
}

TEST_CASE("ranks in a worker's problem are told as those of the group, in order") {
  auto const group = group_of({"c", "a", "b"});
  http::Problem problem(http::ProblemCode::peer_lost, "gone");
  problem.ranks = {0, 2};
  CHECK(RunRanks(group, wish_for(Op::all_reduce, true)).in_group_ranks(problem).ranks ==
        std::vector<std::uint32_t>{0, 1});
  CHECK(RunRanks(group, wish_for(Op::all_reduce, false)).in_group_ranks(problem).ranks ==
        std::vector<std::uint32_t>{0, 2});
}

TEST_CASE("segments are as the collective says, else as the group has them, else as they always were") {
  auto group = group_of({"a"});
  auto const segment_bytes = [&](std::optional<std::uint64_t> asked) {
    api::Collective collective;
    collective.request.schedule.segment_bytes = asked;
    Admitted admitted;
    admitted.versions = {2};
    admitted.parts.resize(1);
    admitted.tensors = {0};
    admitted.devices.resize(1);
    return RunRanks(group, wish_for(Op::all_reduce, false))
        .request(0, group, collective, admitted, "token", 1000)
        .schedule.segment_bytes;
  };
  CHECK(segment_bytes(std::nullopt) == 262144);  // groups of older journals say nothing
  group.segment_bytes = 1048576;
  CHECK(segment_bytes(std::nullopt) == 1048576);
  CHECK(segment_bytes(65536) == 65536);
}
