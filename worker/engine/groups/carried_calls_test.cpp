// Averages whose sums do not fit their dtype, called by members of a group in C++: over links and in shared memory, in
// one piece and in several.
#include <doctest/doctest.h>

#include <limits>

#include "collectives/algorithms/catalogue.hpp"
#include "worker/engine/groups/fused_calls.hpp"
#include "worker/engine/testing/group_members.hpp"
#include "worker/engine/testing/tcp_fleet.hpp"

using namespace chorus;
using namespace chorus::engine;
using namespace chorus::engine::testing;

namespace {

template <class T>
int wrong_lists(Group& group, plan::Rank rank, memory::Arena* arena, Dtype dtype, T value) {
  FusedCalls calls(group, rank, arena, {.bucket_bytes = 40000, .alone_bytes = 30000});
  int wrong = 0;
  for (auto const* algorithm : {&algorithms::mesh, &algorithms::allpairs, &algorithms::ring, &algorithms::tree})
    for (auto const op : {Op::all_reduce, Op::reduce}) {
      if (algorithm->check({.op = op, .algorithm = std::string(algorithm->name), .ranks = members}).has_error())
        continue;
      std::vector<std::span<std::byte>> blocks;
      std::vector<std::vector<T>> own;
      std::vector<FusedTensor> list;
      for (std::size_t const size : {1, 700, 1000, 3, 9000, 1}) {
        if (arena != nullptr && size != 3)
          blocks.push_back(arena->allocate(size * sizeof(T)).value());
        else
          blocks.push_back(std::as_writable_bytes(std::span(own.emplace_back(size))));
        list.push_back({blocks.back(), dtype});
        std::span const values(reinterpret_cast<T*>(blocks.back().data()), size);
        std::fill(values.begin(), values.end(), value);
      }
      auto const choose = [&](std::uint64_t, Dtype) -> Result<CallOptions> {
        CallOptions options;
        options.algorithm = algorithm;
        return options;
      };
      if (calls.run(op, list, ReduceOp::avg, choose).status.has_error()) ++wrong;
      bool const gets = op == Op::all_reduce || rank == 0;
      for (auto const& tensor : list)
        for (auto const got : std::span(reinterpret_cast<T*>(tensor.bytes.data()), tensor.bytes.size() / sizeof(T)))
          if (gets && got != value) ++wrong;
      for (std::size_t b = 0; arena != nullptr && b < blocks.size(); ++b)
        if (arena->offset_of(blocks[b])) arena->free(blocks[b].data());
    }
  return wrong;
}

}  // namespace

TEST_CASE("lists of tensors at the limits of their dtype are averaged right, over links and in shared memory") {
  for (bool const shares_memory : {false, true}) {
    CAPTURE(shares_memory);
    CHECK(of_all_members(shares_memory, [](Group& group, plan::Rank rank, memory::Arena* arena) {
            return wrong_lists<std::int8_t>(group, rank, arena, Dtype::i8, 127) +
                   wrong_lists<std::uint16_t>(group, rank, arena, Dtype::f16, 0x7b53) +
                   wrong_lists<std::int64_t>(group, rank, arena, Dtype::i64, std::numeric_limits<std::int64_t>::min());
          }) == 0);
  }
}

TEST_CASE("blocks of an average of 64 bits are those of the vector, though two numbers travel for each") {
  for (bool const shares_memory : {false, true}) {
    CAPTURE(shares_memory);
    CHECK(of_all_members(shares_memory, [](Group& group, plan::Rank rank, memory::Arena*) {
            constexpr auto most = std::numeric_limits<std::uint64_t>::max();
            std::vector<std::uint64_t> const whole(11, most - rank);
            std::vector<std::uint64_t> block(rank < 2 ? 4 : 3);
            CallOptions options;
            options.algorithm = &algorithms::ring;
            auto const result =
                group.run(Op::reduce_scatter, std::as_bytes(std::span(whole)), std::as_writable_bytes(std::span(block)),
                          Dtype::u64, ReduceOp::avg, whole.size(), options);
            bool const is_right = result.status.has_value() && block == std::vector(block.size(), most - 1);
            return is_right ? 0 : 1;
          }) == 0);
  }
}

TEST_CASE("a member that averages and one that sums in a wider dtype refuse each other") {
  CHECK(of_all_members(false, [](Group& group, plan::Rank rank, memory::Arena*) {
          std::vector<std::uint16_t> halves(100);
          std::vector<float> floats(100);
          CallOptions options;
          options.algorithm = &algorithms::ring;
          options.in_place = true;
          auto const all =
              rank == 0 ? std::as_writable_bytes(std::span(floats)) : std::as_writable_bytes(std::span(halves));
          auto const result = group.all_reduce(all, all, rank == 0 ? Dtype::f32 : Dtype::f16,
                                               rank == 0 ? ReduceOp::sum : ReduceOp::avg, options);
          return result.status.has_error() && result.status.error().code == EngineErrc::plan_mismatch ? 0 : 1;
        }) == 0);
}
