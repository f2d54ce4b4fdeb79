// Lists of tensors for operations with blocks: every output has the bits of a call with its tensor alone.
#include "worker/engine/groups/fused_blocks.hpp"

#include <doctest/doctest.h>

#include <cstring>

#include "worker/engine/failure/errc.hpp"
#include "worker/engine/testing/group_members.hpp"

using namespace chorus;
using namespace chorus::engine;
using namespace chorus::engine::testing;

namespace {

constexpr FusionLimits limits{.bucket_bytes = 40000, .alone_bytes = 30000};

struct Operand {
  std::vector<std::byte> input, output;
  std::uint64_t elements = 0;
  Dtype dtype = Dtype::f32;
};

// Bytes that a rank has of the whole, before and after.
std::uint64_t size_of(Op op, bool is_input, plan::Rank rank, std::uint64_t elements) {
  auto const own = plan::Layout(elements, members).range(rank).size();
  if (op == Op::all_gather) return is_input ? own : elements;
  if (op == Op::reduce_scatter) return is_input ? elements : own;
  return is_input ? elements : own * members;
}

std::vector<std::byte> numbers(std::uint64_t count, Dtype dtype, plan::Rank rank) {
  std::vector<std::byte> bytes(count * element_bytes(dtype));
  for (std::uint64_t i = 0; i < count; ++i) {
    float const real = 1.0F / static_cast<float>(3 + i % 11 + rank);  // sums depend on the order
    auto const whole = static_cast<std::int32_t>(i * (rank + 1));
    std::memcpy(bytes.data() + 4 * i, dtype == Dtype::f32 ? static_cast<void const*>(&real) : &whole, 4);
  }
  return bytes;
}

std::vector<Operand> make_operands(Op op, plan::Rank rank, std::vector<std::uint64_t> const& sizes, bool in_place) {
  std::vector<Operand> list;
  for (std::size_t t = 0; t < sizes.size(); ++t) {
    auto const dtype = t % 4 == 3 ? Dtype::i32 : Dtype::f32;
    auto const input = in_place ? sizes[t] : size_of(op, true, rank, sizes[t]);
    auto const output = in_place ? 0 : size_of(op, false, rank, sizes[t]);
    list.push_back({numbers(input, dtype, rank), std::vector<std::byte>(4 * output), sizes[t], dtype});
  }
  return list;
}

std::vector<FusedOperand> views(std::vector<Operand>& list, bool in_place) {
  std::vector<FusedOperand> all;
  for (auto& each : list) all.push_back({each.input, in_place ? each.input : each.output, each.elements, each.dtype});
  return all;
}

// What the operation gives: the output, or in place the part of it that is specified.
std::vector<std::byte> result_of(Op op, plan::Rank rank, Operand const& operand, bool in_place) {
  if (!in_place) return operand.output;
  if (op != Op::reduce_scatter) return operand.input;
  auto const own = plan::Layout(operand.elements, members).range(rank);
  auto const begin = operand.input.begin() + static_cast<std::ptrdiff_t>(4 * own.begin);
  return {begin, begin + static_cast<std::ptrdiff_t>(4 * own.size())};
}

ChooseForBucket always(plan::Algorithm const& algorithm) {
  return [&algorithm](std::uint64_t, Dtype) -> Result<CallOptions> {
    CallOptions options;
    options.algorithm = &algorithm;
    return options;
  };
}

int differences(Group& group, plan::Rank rank, memory::Arena* arena, std::vector<std::uint64_t> const& sizes,
                bool in_place) {
  FusedBlocks calls(group, rank, members, arena, limits);
  int wrong = 0;
  for (auto const op : {Op::all_gather, Op::reduce_scatter, Op::all_to_all})
    for (auto const* algorithm : {&algorithms::direct, &algorithms::ring}) {
      if (op == Op::all_to_all && algorithm == &algorithms::ring) continue;
      auto alone = make_operands(op, rank, sizes, in_place), listed = alone;
      for (auto const& each : views(alone, in_place)) {
        CallOptions options;
        options.algorithm = algorithm;
        options.in_place = in_place;
        auto const done = group.run(op, each.input, each.output, each.dtype, ReduceOp::sum, each.elements, options);
        if (done.status.has_error()) return 1000;
      }
      auto const done = calls.run(op, views(listed, in_place), in_place, ReduceOp::sum, always(*algorithm));
      if (done.status.has_error()) return 1000;
      for (std::size_t t = 0; t < sizes.size(); ++t)
        if (result_of(op, rank, listed[t], in_place) != result_of(op, rank, alone[t], in_place)) ++wrong;
    }
  return wrong;
}

}  // namespace

TEST_CASE("outputs of a list are as from a call for each input, also of blocks that differ by one element") {
  std::vector<std::uint64_t> const sizes{1, 700, 0, 1000, 3, 9000, 2500, 1024, 2, 1, 6000, 512, 20000, 999};
  for (bool const shares_memory : {true, false}) {
    CAPTURE(shares_memory);
    CHECK(of_all_members(shares_memory, [&](Group& group, plan::Rank rank, memory::Arena* arena) {
            return differences(group, rank, arena, sizes, false) + differences(group, rank, arena, sizes, false);
          }) == 0);
  }
}

TEST_CASE("in place the outputs of a list are as from a call for each input") {
  std::vector<std::uint64_t> const sizes{3, 699, 0, 999, 6, 9000, 2499, 20001, 300};
  for (bool const shares_memory : {true, false}) {
    CAPTURE(shares_memory);
    CHECK(of_all_members(shares_memory, [&](Group& group, plan::Rank rank, memory::Arena* arena) {
            return differences(group, rank, arena, sizes, true);
          }) == 0);
  }
}

TEST_CASE("members that pass lists of the same sizes together, cut in other places, are refused") {
  auto const refused = of_all_members(false, [](Group& group, plan::Rank rank, memory::Arena* arena) {
    FusedBlocks calls(group, rank, members, arena, limits);
    auto const sizes = rank == 0 ? std::vector<std::uint64_t>{300, 600} : std::vector<std::uint64_t>{600, 300};
    auto list = make_operands(Op::all_gather, rank, sizes, false);
    auto const done = calls.run(Op::all_gather, views(list, false), false, ReduceOp::sum, always(algorithms::direct));
    return done.status.has_error() && done.status.error().code == EngineErrc::plan_mismatch ? 1 : 0;
  });
  CHECK(refused == 3);
}

TEST_CASE("an empty list is a call of nothing") {
  CHECK(of_all_members(false, [](Group& group, plan::Rank rank, memory::Arena* arena) {
          FusedBlocks calls(group, rank, members, arena, limits);
          auto const done = calls.run(Op::all_gather, {}, false, ReduceOp::sum, always(algorithms::direct));
          return done.status.has_error() ? 1 : 0;
        }) == 0);
}
