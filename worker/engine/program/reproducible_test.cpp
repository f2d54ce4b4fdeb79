// Algorithms that reduce in worker order give the same bits, and round f16 and bf16 once.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "collectives/algorithms/catalogue.hpp"
#include "worker/engine/program/local_collective.hpp"
#include "worker/engine/testing/loopback_fleet.hpp"

using namespace chorus;
using namespace chorus::engine;
using namespace chorus::engine::testing;
using plan::Rank;

namespace {

using Bytes = std::vector<std::byte>;

template <class T>
Bytes repeated(T value, std::size_t elements) {
  Bytes bytes(elements * sizeof(T));
  for (std::size_t i = 0; i < elements; ++i) std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
  return bytes;
}

// Runs the case over links, with one whole vector per rank. Returns the result of all ranks, of the root, or all blocks
// in rank order.
Bytes reduced(Case c, std::vector<Bytes> const& inputs) {
  FleetOptions options;
  options.ranks = static_cast<std::uint32_t>(inputs.size());
  options.network = {7, 50000, 20000};
  options.partials_bytes = 0;
  LoopbackFleet fleet(options);
  c.elements = inputs.front().size() / element_bytes(c.dtype);
  Collective collective(fleet, c, fleet.now());
  for (Rank rank = 0; rank < inputs.size(); ++rank) {
    auto& spec = collective.spec(rank);
    bool const one_buffer = !spec.output.empty() && spec.input.data() == spec.output.data();
    if (one_buffer) std::copy(inputs[rank].begin(), inputs[rank].end(), spec.output.begin());
    if (!one_buffer) spec.input = inputs[rank];
  }
  REQUIRE(collective.run());
  auto const output = [&](Rank rank) {
    auto const bytes = collective.spec(rank).output;
    return Bytes(bytes.begin(), bytes.end());
  };
  if (c.op == Op::reduce) return output(c.root);
  if (c.op == Op::reduce_scatter) {
    Bytes all;
    for (Rank rank = 0; rank < options.ranks; ++rank) {
      auto const block = plan::Layout(c.elements, options.ranks).range(rank);
      auto const own = collective.spec(rank).output.subspan(c.in_place ? block.begin * element_bytes(c.dtype) : 0,
                                                            block.size() * element_bytes(c.dtype));
      all.insert(all.end(), own.begin(), own.end());
    }
    return all;
  }
  for (Rank rank = 1; rank < inputs.size(); ++rank) REQUIRE(output(rank) == output(0));
  return output(0);
}

std::vector<plan::Algorithm const*> in_worker_order(Op op = Op::all_reduce) {
  auto algorithms = algorithms::all_for(op);
  std::erase_if(algorithms, [op](auto const* algorithm) {
    return algorithm->in_worker_order == nullptr ||
           !algorithm->in_worker_order({.op = op, .algorithm = std::string(algorithm->name), .ranks = 4});
  });
  return algorithms;
}

}  // namespace

TEST_CASE("1e8, 1, -1e8, 1 in every permutation: the sum in worker order, whatever the algorithm, size and segment") {
  std::vector<float> values{-1e8F, 1, 1, 1e8F};
  do {
    auto const expected = ((values[0] + values[1]) + values[2]) + values[3];
    for (auto const* algorithm : in_worker_order())
      for (std::size_t const elements : {1, 7, 5000})
        for (std::uint64_t const segment_bytes : {64, 4096}) {
          std::vector<Bytes> inputs;
          for (auto const value : values) inputs.push_back(repeated(value, elements));
          Case c;
          c.algorithm = algorithm;
          c.root = algorithm->rooted ? 2 : 0;
          c.segment_bytes = segment_bytes;
          REQUIRE(reduced(c, inputs) == repeated(expected, elements));
        }
  } while (std::next_permutation(values.begin(), values.end()));
}

TEST_CASE("large values of opposite sign at every pair of ranks: all ranks and algorithms agree to the bit") {
  constexpr std::uint32_t ranks = 10;  // the pattern of MPICH's test allred_float
  for (Rank plus = 0; plus < ranks; ++plus)
    for (Rank minus = 0; minus < ranks; ++minus) {
      if (plus == minus) continue;
      std::vector<Bytes> inputs;
      for (Rank rank = 0; rank < ranks; ++rank)
        inputs.push_back(repeated(rank == plus ? 1e6F : rank == minus ? -1e6F : 1e-2F, 11));
      std::map<Bytes, std::string> results;
      for (auto const* algorithm : in_worker_order()) {
        Case c;
        c.algorithm = algorithm;
        results[reduced(c, inputs)] += std::string(algorithm->name) + ' ';
      }
      CHECK(results.size() == 1);
    }
}

TEST_CASE("all ranks hold the same bits after every algorithm") {
  std::vector<Bytes> inputs;
  for (Rank rank = 0; rank < 6; ++rank) {
    Bytes bytes;
    for (std::uint32_t i = 0; i < 1001; ++i) {
      auto const value = 1.0F / static_cast<float>(3 + i + 7 * rank);
      auto const one = repeated(value, 1);
      bytes.insert(bytes.end(), one.begin(), one.end());
    }
    inputs.push_back(std::move(bytes));
  }
  for (auto const* algorithm : algorithms::all_for(Op::all_reduce)) {
    Case c;
    c.algorithm = algorithm;
    CAPTURE(algorithm->name);
    CHECK_FALSE(reduced(c, inputs).empty());
  }
}

TEST_CASE("f16 and bf16 are summed in f32 where all elements of a sum are reduced in one place, and rounded once") {
  // 2048 + 1 is 2048 in f16, and 256 + 1 is 256 in bf16: rounding after each step would lose both of the ones.
  struct Half {
    Dtype dtype;
    std::uint16_t large, one, sum;
  };
  CHECK(in_worker_order(Op::all_reduce).size() >= 3);
  CHECK(in_worker_order(Op::reduce).size() >= 1);
  CHECK(in_worker_order(Op::reduce_scatter).size() >= 2);
  for (auto const half : {Half{Dtype::f16, 0x6800, 0x3c00, 0x6801}, Half{Dtype::bf16, 0x4380, 0x3f80, 0x4381}})
    for (auto const op : {Op::all_reduce, Op::reduce, Op::reduce_scatter})
      for (auto const* algorithm : in_worker_order(op))
        for (Rank const root : {0U, 1U, 2U})
          for (bool const in_place : {false, true}) {
            if (root > 0 && !algorithm->rooted && !is_rooted(op)) continue;
            std::vector<Bytes> const inputs{repeated(half.large, 900), repeated(half.one, 900),
                                            repeated(half.one, 900)};
            Case c{.algorithm = algorithm, .op = op, .root = root};
            c.dtype = half.dtype;
            c.in_place = in_place;
            c.segment_bytes = 256;
            CAPTURE(to_string(c));
            CHECK(reduced(c, inputs) == repeated(half.sum, 900));
          }
}

TEST_CASE("the average of f16 does not overflow in its partial sums") {
  std::uint16_t const large = 0x7a00;  // 49152 in f16: the sum of two is beyond f16, the average is not
  Case c;
  c.dtype = Dtype::f16;
  c.reduce = ReduceOp::avg;
  for (auto const* algorithm : in_worker_order()) {
    c.algorithm = algorithm;
    CHECK(reduced(c, {repeated(large, 5), repeated(large, 5)}) == repeated(large, 5));
  }
}
