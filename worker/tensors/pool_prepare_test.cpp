// Blocks that are announced first and get memory later, and whose memory another thread frees.
#include <doctest/doctest.h>

#include <algorithm>
#include <deque>
#include <future>
#include <thread>

#include "worker/tensors/errc.hpp"
#include "worker/tensors/memory.hpp"

using namespace chorus;
using namespace chorus::tensors;

namespace {

constexpr std::size_t mebi = 1 << 20;

std::shared_ptr<memory::Arena> make_arena() {
  return std::make_shared<memory::Arena>(memory::SharedRegion::create(memory::random_ticket(256 * mebi)).value());
}

// Work for another thread, which the test runs itself.
struct Others {
  Pool::Elsewhere elsewhere() {
    return [this](std::function<void()> work) { left.push_back(std::move(work)); };
  }
  void work() {
    for (; !left.empty(); left.pop_front()) left.front()();
  }
  std::deque<std::function<void()>> left;
};

}  // namespace

TEST_CASE("only the prepared part of an announced block counts as in use") {
  for (auto const& arena : {make_arena(), std::shared_ptr<memory::Arena>()}) {
    Pool pool(64 * mebi, 64 * mebi, arena);
    auto const block = pool.announce(48 * mebi).value();
    CHECK(pool.in_use_bytes() == 0);
    CHECK_FALSE(Pool::is_prepared(block));
    REQUIRE(pool.prepare(block, 0, 2 * mebi).has_value());
    std::fill_n(block->data(), 2 * mebi, std::byte{7});
    CHECK(pool.in_use_bytes() == 2 * mebi);
    CHECK(pool.acquire(60 * mebi).has_value());
    REQUIRE(pool.prepare(block, 2 * mebi, 46 * mebi).has_value());
    CHECK(Pool::is_prepared(block));
    CHECK(pool.in_use_bytes() == 48 * mebi);
    CHECK(block->data()[0] == std::byte{7});
  }
}

TEST_CASE("a block that would not fit is refused when announced, or, if memory is lost later, when prepared") {
  Pool pool(0, 64 * mebi, make_arena());
  CHECK(pool.announce(65 * mebi).error().code == TensorErrc::out_of_memory);
  auto const first = pool.announce(48 * mebi).value();
  auto const second = pool.acquire(40 * mebi).value();
  REQUIRE(pool.prepare(first, 0, 24 * mebi).has_value());
  CHECK(pool.prepare(first, 24 * mebi, 24 * mebi).error().code == TensorErrc::out_of_memory);
  CHECK(pool.in_use_bytes() == 64 * mebi);
}

TEST_CASE("a block that was prepared in part is not kept, a whole one is") {
  Pool pool(64 * mebi, 64 * mebi, make_arena());
  auto block = pool.announce(8 * mebi + 100).value();
  REQUIRE(pool.prepare(block, 0, 4 * mebi).has_value());
  block.reset();
  CHECK(pool.kept_bytes() == 0);
  CHECK(pool.in_use_bytes() == 0);
  CHECK(pool.acquire_kept(8 * mebi + 100) == nullptr);
  block = pool.announce(8 * mebi + 100).value();
  REQUIRE(pool.prepare(block, 0, 4 * mebi).has_value());
  REQUIRE(pool.prepare(block, 4 * mebi, 4 * mebi + 100).has_value());
  auto* const place = block->data();
  block.reset();
  CHECK(pool.kept_bytes() > 8 * mebi);
  block = pool.announce(8 * mebi).value();
  CHECK(Pool::is_prepared(block));
  CHECK(block->data() == place);
}

TEST_CASE("the last holder of a large block does not free it") {
  Others others;
  auto const arena = make_arena();
  Pool pool(0, 64 * mebi, arena, others.elsewhere());
  auto block = pool.acquire(32 * mebi).value();
  block.reset();
  CHECK(arena->used_bytes() == 32 * mebi);
  CHECK(pool.in_use_bytes() == 0);
  others.work();
  CHECK(arena->used_bytes() == 0);
}

TEST_CASE("blocks that make room for another one to be kept are not freed by its last holder") {
  Others others;
  auto const arena = make_arena();
  Pool pool(32 * mebi, 128 * mebi, arena, others.elsewhere());
  auto first = pool.acquire(24 * mebi).value(), second = pool.acquire(30 * mebi).value();
  first.reset();
  second.reset();
  CHECK(pool.kept_bytes() == 30 * mebi);
  CHECK(arena->used_bytes() == 54 * mebi);
  others.work();
  CHECK(arena->used_bytes() == 30 * mebi);
}

TEST_CASE("a large block waits for memory that is being freed if the limit requires it, a small one does not") {
  Others others;
  auto const arena = make_arena();
  Pool pool(0, 64 * mebi, arena, others.elsewhere());
  static_cast<void>(pool.acquire(48 * mebi).value());
  REQUIRE(others.left.size() == 1);
  CHECK(pool.acquire(100).has_value());
  auto waiting = std::async(std::launch::async, [&] { return pool.acquire(40 * mebi).value(); });
  while (pool.in_use_bytes() < 40 * mebi) std::this_thread::yield();
  CHECK(arena->used_bytes() == 48 * mebi);
  others.work();
  auto const block = waiting.get();
  CHECK(arena->used_bytes() == 40 * mebi);
}

TEST_CASE("after the end of a pool its blocks are freed by their last holders") {
  Others others;
  auto const arena = make_arena();
  std::shared_ptr<Block> block;
  {
    Pool pool(0, 64 * mebi, arena, others.elsewhere());
    block = pool.acquire(32 * mebi).value();
  }
  block.reset();
  CHECK(others.left.empty());
  CHECK(arena->used_bytes() == 0);
}
