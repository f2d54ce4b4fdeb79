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
  return chooser.choose(Op::all_reduce, bytes, "shm", in_place, {}).value()->algorithm->name;
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
    return chooser.choose(Op::all_reduce, 4, "shm", false, {}).value()->segment_bytes;
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
    return chooser.choose(Op::all_reduce, 4, path, false, options).value()->by_position;
  };
  CHECK(positions("ring", "tcp") == std::vector<plan::Rank>{2, 0, 1});
  CHECK(positions("allpairs", "tcp").empty());
  CHECK(positions("auto", "shm").empty());
}
