#include "worker/engine/program/workspace.hpp"

#include <doctest/doctest.h>

#include <vector>

#include "collectives/algorithms/catalogue.hpp"

using namespace chorus;
using namespace chorus::engine;

namespace {

constexpr std::uint64_t elements = 1000, vector_bytes = 2 * elements;

// Returns the bytes of scratch and partial sums of one rank that sums a vector of f16.
std::uint64_t beside_the_vectors(std::string const& name, std::uint32_t ranks, plan::Rank rank,
                                 PartialsLimit limit = {}) {
  plan::Spec const spec{.op = Op::all_reduce, .algorithm = name, .ranks = ranks};
  auto const program = plan::build(*algorithms::find(name).value(), spec, rank).value();
  std::vector<std::byte> const input(vector_bytes);
  std::vector<std::byte> output(vector_bytes);
  return Workspace(program, Dtype::f16, ReduceOp::sum, {elements, {}, {}}, limit, input, output).bytes();
}

}  // namespace

TEST_CASE("a workspace keeps f32 only for the part of an f16 vector that has partial sums") {
  CHECK(beside_the_vectors("tree", 3, 0) == 2 * vector_bytes);
  CHECK(beside_the_vectors("allpairs", 4, 1) == 2 * vector_bytes / 4);
  CHECK(beside_the_vectors("ring", 4, 0) == 0);
}

TEST_CASE("the memory of partial sums stays within its limit, but holds at least the shortest ring") {
  CHECK(beside_the_vectors("tree", 3, 0, {.memory_bytes = 1024}) == 1024);
  CHECK(beside_the_vectors("tree", 3, 0, {.memory_bytes = 1 << 20}) == 2 * vector_bytes);
  CHECK(beside_the_vectors("mesh", 4, 1, {.memory_bytes = 0, .shortest_bytes = 512}) == 1024);
}
