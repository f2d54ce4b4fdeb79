#include "worker/api/chooser.hpp"

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

TEST_CASE("halves have lines of their own in the table, where it has any, before the others") {
  auto group = group_of(3);
  group.selection = {{"all_reduce", {}, "double_tree", 0, 2, {}, "usual"},
                     {api::of_halves("all_reduce"), 1024, "mesh", 0, 2, {}, "short"},
                     {api::of_halves("all_reduce"), {}, "ring", 0, 2, {}, "long"},
                     {"reduce", {}, "tree", 0, 2, {}, "all"}};
  embedded::Chooser chooser(group);
  auto const over_links = [&](Op op, std::uint64_t bytes, Dtype dtype) {
    return chooser.choose(op, bytes, dtype, "links", false, {}).value()->algorithm->name;
  };
  CHECK(over_links(Op::all_reduce, 4096, Dtype::f16) == "ring");
  CHECK(over_links(Op::all_reduce, 4096, Dtype::i16) == "double_tree");
  CHECK(over_links(Op::all_reduce, 4096, Dtype::bf16) == "ring");
  CHECK(over_links(Op::all_reduce, 1024, Dtype::bf16) == "mesh");
  CHECK(over_links(Op::reduce, 4096, Dtype::f16) == "tree");
}
