// The asynchronous form of every operation: that it is this operation, with these options, on this memory.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <future>

#include "worker/api/testing/embedded_group.hpp"
#include "worker/api/testing/must.hpp"

using namespace chorus;
using namespace chorus::embedded::testing;

namespace {

using Numbers = std::vector<std::int32_t>;

constexpr std::size_t ranks = 3, block = 5, whole = ranks * block;
constexpr std::uint32_t root = 1;  // not the one that is taken where the options are lost

// Of each rank another one, so that no operation gives what another one does.
Numbers values_of(std::size_t rank, std::size_t count) {
  return counting(static_cast<std::int32_t>(1000 * rank), count);
}

Numbers sums(std::size_t count) {
  Numbers sums(count);
  for (std::size_t rank = 0; rank < ranks; ++rank)
    for (std::size_t i = 0; i < count; ++i) sums[i] += values_of(rank, count)[i];
  return sums;
}

// The blocks of all, in rank order.
Numbers blocks_of_all() {
  Numbers all;
  for (std::size_t rank = 0; rank < ranks; ++rank) std::ranges::copy(values_of(rank, block), std::back_inserter(all));
  return all;
}

Numbers block_of(Numbers const& all, std::size_t rank) {
  auto const begin = all.begin() + static_cast<std::ptrdiff_t>(rank * block);
  return {begin, begin + block};
}

void put(Numbers const& part, Numbers& all, std::size_t rank) {
  std::ranges::copy(part, all.begin() + static_cast<std::ptrdiff_t>(rank * block));
}

// What this rank receives: of each its block for it.
Numbers exchanged(std::size_t rank) {
  Numbers received;
  for (std::size_t from = 0; from < ranks; ++from)
    std::ranges::copy(block_of(values_of(from, whole), rank), std::back_inserter(received));
  return received;
}

void reduce_in_every_form(JoinedGroup& group, std::size_t rank) {
  auto const own = values_of(rank, whole), largest = values_of(ranks - 1, whole);
  auto x = own;
  must(group.all_reduce_async(x).wait());
  MUST(x == sums(whole));
  Numbers y(whole, -1);
  must(group.all_reduce_async(own, y, {.reduce = ReduceOp::max}).wait());
  MUST(y == largest);

  x = own;
  must(group.reduce_async(x, {.reduce = ReduceOp::max, .root = root}).wait());
  MUST(x == (rank == root ? largest : own));
  y.assign(whole, -1);
  must(group.reduce_async(own, y, {.root = root}).wait());
  MUST(y == (rank == root ? sums(whole) : Numbers(whole, -1)));

  x = own;
  must(group.reduce_scatter_async(x, {.reduce = ReduceOp::max}).wait());
  MUST(block_of(x, rank) == block_of(largest, rank));
  Numbers part(block, -1);
  must(group.reduce_scatter_async(own, part).wait());
  MUST(part == block_of(sums(whole), rank));
}

void pass_on_in_every_form(JoinedGroup& group, std::size_t rank) {
  auto x = values_of(rank, whole);
  must(group.broadcast_async(x, {.root = root}).wait());
  MUST(x == values_of(root, whole));

  auto const own = values_of(rank, block);
  x.assign(whole, -1);
  put(own, x, rank);
  must(group.all_gather_async(x).wait());
  MUST(x == blocks_of_all());
  Numbers y(whole, -1);
  must(group.all_gather_async(own, y).wait());
  MUST(y == blocks_of_all());

  y.assign(whole, -1);
  must(group.gather_async(own, y, {.root = root}).wait());
  MUST(y == (rank == root ? blocks_of_all() : Numbers(whole, -1)));

  Numbers part(block, -1);
  must(group.scatter_async(values_of(rank, whole), part, {.root = root}).wait());
  MUST(part == block_of(values_of(root, whole), rank));

  x = values_of(rank, whole);
  must(group.all_to_all_async(x).wait());
  MUST(x == exchanged(rank));
  y.assign(whole, -1);
  must(group.all_to_all_async(values_of(rank, whole), y).wait());
  MUST(y == exchanged(rank));
}

void do_lists_in_every_form(JoinedGroup& group, std::size_t rank) {
  auto const own = values_of(rank, whole), largest = values_of(ranks - 1, whole);
  std::vector<Numbers> tensors(4, own);
  std::vector<TensorView> const list(tensors.begin(), tensors.end());
  must(group.all_reduce_async(list, {.reduce = ReduceOp::max}).wait());
  MUST(tensors == std::vector(4, largest));

  for (auto& tensor : tensors) tensor = own;
  must(group.reduce_async(list, {.root = root}).wait());
  MUST(tensors == std::vector(4, rank == root ? sums(whole) : own));

  for (auto& tensor : tensors) tensor = own;
  must(group.broadcast_async(list, {.root = root}).wait());
  MUST(tensors == std::vector(4, values_of(root, whole)));
}

}  // namespace

TEST_CASE("every asynchronous form is the operation that its name says") {
  for (auto const memory : {Memory::shared, Memory::own}) {
    EmbeddedGroup fleet(ranks, memory);
    fleet.everywhere([](JoinedGroup& group, std::size_t rank) {
      reduce_in_every_form(group, rank);
      pass_on_in_every_form(group, rank);
      do_lists_in_every_form(group, rank);
    });
  }
}

TEST_CASE("an asynchronous barrier ends when every member has come, and not before") {
  EmbeddedGroup fleet(ranks);
  std::promise<void> looked;
  auto const may_come = looked.get_future().share();
  fleet.everywhere([&](JoinedGroup& group, std::size_t rank) {
    if (rank != 0) may_come.wait();
    auto const handle = group.barrier_async();
    if (rank == 0) {
      bool const was_alone =
          handle.wait_until(std::chrono::steady_clock::now() + std::chrono::milliseconds(50)).has_value();
      looked.set_value();
      MUST(!was_alone);
    }
    must(handle.wait());
  });
}

TEST_CASE("the first of several calls that has ended is found, also where they are of several groups") {
  EmbeddedGroup fleet(2);
  fleet.coordinator.assign("h", 1, fleet.ids());
  auto mine = fleet.join(0), yours = fleet.join(1);
  auto my_other = fleet.workers[0].join("h", soon()).value(), your_other = fleet.workers[1].join("h", soon()).value();
  auto const first = mine.barrier_async(), second = my_other.barrier_async();
  std::array<Handle const*, 2> const handles{&first, &second};
  CHECK(!wait_any(handles, std::chrono::steady_clock::now()).has_value());
  CHECK(!wait_any({}, soon()).has_value());

  auto waiting = std::async(std::launch::async, [&] { return wait_any(handles, soon()); });
  must(your_other.barrier());
  CHECK(waiting.get() == std::size_t{1});
  CHECK(!first.is_done());
  must(yours.barrier());
  must(first.wait());
  CHECK(wait_any(handles, soon()) == std::size_t{0});
}
