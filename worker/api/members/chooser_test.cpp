#include "worker/api/members/chooser.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <thread>

using namespace chorus;

namespace {

::chorus::api::Group group_of(std::size_t members) {
  ::chorus::api::Group group;
  group.members.resize(members);
  return group;
}

std::string_view chosen(embedded::Chooser& chooser, std::uint64_t bytes, bool in_place) {
  return chooser.choose(Op::all_reduce, bytes, Dtype::f32, "shm", in_place, {}).value()->algorithm->name;
}

}  // namespace

TEST_CASE("over shared memory a call in place has a choice of its own, also between calls that are not") {
  embedded::Chooser chooser(group_of(2));
  for (int again = 0; again < 2; ++again) {
    CHECK(chosen(chooser, 65536, true) == "allpairs");
    CHECK(chosen(chooser, 65536, false) == "mesh");
    CHECK(chosen(chooser, 4, true) == "mesh");
  }
}

TEST_CASE("what is sent is cut longer where a host has more members than processors") {
  auto const segment_bytes = [](std::size_t members) {
    embedded::Chooser chooser(group_of(members));
    return chooser.choose(Op::all_reduce, 4, Dtype::f32, "shm", false, {}).value()->segment_bytes;
  };
  auto const processors = std::max(std::thread::hardware_concurrency(), 1U);
  CHECK(segment_bytes(processors) == 262144);
  CHECK(segment_bytes(processors + 1) == 1048576);
}

TEST_CASE("over links a call has the positions of its group, unless it takes the ranks in their order") {
  auto group = group_of(3);
  group.by_position = {2, 0, 1};
  embedded::Chooser chooser(group);
  auto const positions = [&](char const* algorithm, char const* path) {
    CollectiveOptions options;
    options.algorithm = algorithm;
    return chooser.choose(Op::all_reduce, 4, Dtype::f32, path, false, options).value()->by_position;
  };
  CHECK(positions("ring", "tcp") == std::vector<plan::Rank>{2, 0, 1});
  CHECK(positions("allpairs", "tcp").empty());
  CHECK(positions("auto", "shm").empty());
}

TEST_CASE("over links auto takes the first format of the group's table that is allowed and that the dtype has") {
  auto group = group_of(3);
  for (std::size_t i = 0; i < 3; ++i) group.members[i].locality.host = std::to_string(i);
  group.selection = {{"all_reduce", {}, "ring", 0, 2, {}, {}}, {"gather", {}, "direct", 0, 2, {}, {}}};
  group.compression = {{"all_reduce", {}, 4, 1000, {}, {}},
                       {"all_reduce", {}, 4, {}, {"fp8_e4m3", "int8", "bf16"}, {}},
                       {"all_reduce", {}, 2, {}, {"int8"}, {}},
                       {"all_reduce", "host", 4, {}, {"bf16"}, {}}};
  embedded::Chooser chooser(group);
  auto const both = CompressionWish::automatic({WireFormat::bf16, WireFormat::int8});
  auto const sent = [&](CompressionWish wish, std::uint64_t bytes, Dtype dtype, char const* path) {
    CollectiveOptions options;
    options.compression = wish;
    return chooser.choose(Op::all_reduce, bytes, dtype, path, false, options).value()->compression;
  };
  CHECK(sent(both, 1001, Dtype::f32, "links") == WireFormat::int8);
  CHECK_FALSE(sent(both, 1000, Dtype::f32, "links").has_value());
  CHECK(sent(CompressionWish::automatic(), 1001, Dtype::f32, "links") == WireFormat::bf16);
  CHECK(sent(both, 8, Dtype::f16, "links") == WireFormat::int8);
  CHECK_FALSE(sent(CompressionWish::automatic(), 8, Dtype::f16, "links").has_value());
  CHECK_FALSE(sent(both, 1001, Dtype::i32, "links").has_value());
  CHECK(sent(CompressionWish::automatic({WireFormat::bf16}, Level::host), 8, Dtype::f64, "links") ==
        Compression(WireFormat::bf16, Level::host));
  CHECK_FALSE(sent(both, 1002, Dtype::f32, "shm").has_value());  // not a call of the same kind
  CHECK(sent(WireFormat::int8, 8, Dtype::f32, "links") == WireFormat::int8);
}

TEST_CASE("with codes by auto a reduction takes an algorithm that adds them at one place, with elements the table's") {
  auto group = group_of(3);
  group.selection = {{"all_reduce", {}, "ring", 0, 2, {}, {}}};
  group.compression = {{"all_reduce", {}, 4, 1000, {}, {}}, {"all_reduce", {}, 4, {}, {"bf16"}, {}}};
  embedded::Chooser chooser(group);
  CollectiveOptions options;
  options.compression = CompressionWish::automatic();
  auto const algorithm = [&](std::uint64_t bytes) {
    return chooser.choose(Op::all_reduce, bytes, Dtype::f32, "links", false, options).value()->algorithm->name;
  };
  CHECK(algorithm(1001) == "allpairs");
  CHECK(algorithm(1000) == "ring");
}

TEST_CASE("a large average takes an algorithm that needs no wider numbers, a small one and a sum the table's") {
  auto group = group_of(5);
  group.selection = {{"all_reduce", {}, "bcube", 0, 2, {}, {}}};
  embedded::Chooser chooser(group);
  auto const algorithm = [&](ReduceOp reduce, std::uint64_t bytes, char const* name) {
    CollectiveOptions options;
    options.reduce = reduce;
    options.algorithm = name;
    return chooser.choose(Op::all_reduce, bytes, Dtype::f32, "links", false, options).value()->algorithm->name;
  };
  CHECK(algorithm(ReduceOp::avg, 1 << 20, "auto") == "ring");
  CHECK(algorithm(ReduceOp::avg, 1 << 20, "bcube") == "bcube");
  CHECK(algorithm(ReduceOp::avg, 1024, "auto") == "bcube");
  CHECK(algorithm(ReduceOp::sum, 1 << 20, "auto") == "bcube");
}

TEST_CASE("over shared memory a large average to one member takes such an algorithm, too") {
  embedded::Chooser chooser(group_of(5));
  CollectiveOptions options;
  options.reduce = ReduceOp::avg;
  for (auto const op : {Op::reduce, Op::reduce_scatter}) {
    auto const& algorithm = *chooser.choose(op, 1 << 20, Dtype::f32, "shm", false, options).value()->algorithm;
    plan::Spec const spec{.op = op, .algorithm = std::string(algorithm.name), .ranks = 5};
    CHECK(plan::summation_of(algorithm, spec) == plan::Summation::one_by_one);
  }
}

TEST_CASE("auto is refused for what has no codes, and without the group's table") {
  auto group = group_of(3);
  group.selection = {{"all_reduce", {}, "ring", 0, 2, {}, {}}, {"gather", {}, "direct", 0, 2, {}, {}}};
  auto const refusal = [&](Op op, ReduceOp reduce, char const* path) {
    CollectiveOptions options;
    options.reduce = reduce;
    options.compression = CompressionWish::automatic();
    auto const chosen = embedded::Chooser(group).choose(op, 8, Dtype::f32, path, false, options);
    return chosen.has_error() ? chosen.error().detail : std::string();
  };
  CHECK(refusal(Op::all_reduce, ReduceOp::sum, "links").find("has no table for 'auto'") != std::string::npos);
  CHECK(refusal(Op::all_reduce, ReduceOp::sum, "shm").empty());
  group.compression.emplace();
  CHECK(refusal(Op::all_reduce, ReduceOp::sum, "links").empty());
  for (auto const* path : {"links", "shm"}) {
    CHECK(refusal(Op::all_reduce, ReduceOp::max, path).find("the error of max has no bound") != std::string::npos);
    CHECK(refusal(Op::gather, ReduceOp::sum, path).find("gather has none") != std::string::npos);
  }
}
