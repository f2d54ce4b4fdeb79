// Metadata that a launch may use without asking the workers.
#include <doctest/doctest.h>

#include "server/coordinator/admission/tensor_metadata_cache.hpp"

using namespace chorus;
using namespace chorus::coordinator;

namespace {

api::Group group(std::string name, std::uint32_t epoch = 1) {
  api::Group made;
  made.name = std::move(name);
  made.epoch = epoch;
  return made;
}

TensorMetadataCache::Known known(std::uint64_t version) {
  return {{RankTensor{0, "w0", "f32", "4", "cpu", version}, RankTensor{1, "w1", "f32", "4", "cpu", version}}, true};
}

AdmissionQuestion question(Op op = Op::all_reduce) {
  AdmissionQuestion made;
  made.op = op;
  made.tensor = "x";
  return made;
}

}  // namespace

TEST_CASE("metadata of a tensor belong to one group in one epoch") {
  TensorMetadataCache tensors;
  tensors.learn(group("g"), "x", known(7));
  REQUIRE(tensors.find(group("g"), "x") != nullptr);
  CHECK(tensors.find(group("g"), "x")->ranks == known(7).ranks);
  CHECK(tensors.find(group("g"), "y") == nullptr);
  CHECK(tensors.find(group("h"), "x") == nullptr);
  CHECK(tensors.find(group("g", 2), "x") == nullptr);
  tensors.learn(group("g", 2), "x", known(8));
  CHECK(tensors.find(group("g", 2), "x")->ranks == known(8).ranks);
  CHECK(tensors.find(group("g", 1), "x") == nullptr);
}

TEST_CASE("forgotten metadata are unknown, and the rest is known") {
  TensorMetadataCache tensors;
  for (auto const* name : {"g", "h"})
    for (auto const* tensor : {"x", "y"}) tensors.learn(group(name), tensor, known(1));
  tensors.forget("g", "x");
  CHECK(tensors.find(group("g"), "x") == nullptr);
  CHECK(tensors.find(group("g"), "y") != nullptr);
  tensors.forget("h");
  CHECK(tensors.size() == 1);
}

TEST_CASE("only the most recently used metadata are kept") {
  TensorMetadataCache tensors(2);
  tensors.learn(group("g"), "x", known(1));
  tensors.learn(group("g"), "y", known(1));
  CHECK(tensors.find(group("g"), "x") != nullptr);
  tensors.learn(group("g"), "z", known(1));
  CHECK(tensors.size() == 2);
  CHECK(tensors.find(group("g"), "x") != nullptr);
  CHECK(tensors.find(group("g"), "y") == nullptr);
}

TEST_CASE("an operation leaves metadata of tensors that all ranks bring, keep, and do not write in place") {
  auto const ranks = known(1).ranks;
  CHECK(leaves_known(question(Op::all_reduce), ranks));
  CHECK(leaves_known(question(Op::reduce), ranks));
  for (auto const op :
       {Op::broadcast, Op::all_gather, Op::reduce_scatter, Op::gather, Op::scatter, Op::all_to_all, Op::barrier})
    CHECK_FALSE(leaves_known(question(op), ranks));

  auto in_place = question();
  in_place.in_place = true;
  CHECK_FALSE(leaves_known(in_place, ranks));
  auto elsewhere = question();
  elsewhere.output = "y";
  CHECK_FALSE(leaves_known(elsewhere, ranks));
  auto missing = ranks;
  missing[1].reset();
  CHECK_FALSE(leaves_known(question(), missing));
  auto several = ranks;
  several[0]->parts = 2;
  CHECK_FALSE(leaves_known(question(), several));
}
