// Members of a group over shared memory in one process.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "collectives/algorithms/catalogue.hpp"
#include "worker/engine/shm/shared_group.hpp"

namespace chorus::engine::testing {

inline std::unique_ptr<memory::Arena> large_arena() {
  auto region = memory::SharedRegion::create(memory::random_ticket(1u << 30));
  return std::make_unique<memory::Arena>(std::move(region.value()));
}

// Members of one group, each called by a thread of the test.
class SharedMembers {
 public:
  explicit SharedMembers(std::uint32_t ranks, std::chrono::milliseconds silence = std::chrono::seconds(5)) {
    std::vector<Peer> peers;
    for (plan::Rank rank = 0; rank < ranks; ++rank) peers.push_back({rank, "w" + std::to_string(rank), rank + 1, ""});
    std::vector<SharedCard> cards;
    for (plan::Rank rank = 0; rank < ranks; ++rank) {
      arenas.push_back(large_arena());
      groups.push_back(SharedGroup::make(*arenas[rank], rank, peers, silence).value());
      cards.push_back(groups[rank]->card());
    }
    for (auto& group : groups) REQUIRE(group->meet(cards, regions).has_value());
    cards_ = cards;
  }

  // Allocates `elements` of this value in the arena.
  std::span<float> vector(plan::Rank rank, std::size_t elements, float value) {
    auto const block = arenas[rank]->allocate(elements * sizeof(float)).value();
    std::span const numbers(reinterpret_cast<float*>(block.data()), elements);
    std::fill(numbers.begin(), numbers.end(), value);
    return numbers;
  }

  RunResult all_reduce(plan::Rank rank, std::span<float> input, std::span<float> output,
                       plan::Algorithm const& algorithm, std::chrono::milliseconds timeout = std::chrono::seconds(20)) {
    plan::Spec const spec{.op = Op::all_reduce,
                          .algorithm = std::string(algorithm.name),
                          .ranks = static_cast<std::uint32_t>(groups.size())};
    auto program = std::make_shared<plan::Program const>(plan::build(algorithm, spec, rank).value());
    auto const call =
        SharedCall::make(program, {input.size(), {}, {}}, Dtype::f32, ReduceOp::sum, input.size(), *arenas[rank])
            .value();
    return groups[rank]->run(*call, 1, "a sum of " + std::to_string(input.size()), std::as_bytes(input),
                             std::as_writable_bytes(output), timeout);
  }

  // Sums in place, in memory that consists of pieces.
  RunResult all_reduce(plan::Rank rank, std::vector<std::span<float>> const& pieces, plan::Algorithm const& algorithm,
                       std::chrono::milliseconds timeout = std::chrono::seconds(20)) {
    std::uint64_t elements = 0;
    std::vector<std::span<std::byte>> memory;
    for (auto const piece : pieces) {
      elements += piece.size();
      memory.push_back(std::as_writable_bytes(piece));
    }
    plan::Spec const spec{.op = Op::all_reduce,
                          .algorithm = std::string(algorithm.name),
                          .ranks = static_cast<std::uint32_t>(groups.size()),
                          .in_place = true};
    auto program = std::make_shared<plan::Program const>(plan::build(algorithm, spec, rank).value());
    auto const call =
        SharedCall::make(program, {elements, {}, {}}, Dtype::f32, ReduceOp::sum, elements, *arenas[rank]).value();
    return groups[rank]->run_in_pieces(*call, 1, "a sum of " + std::to_string(elements), {}, memory, timeout, nullptr);
  }

  // Returns the lane from `sender` to `receiver`.
  Lane& lane(plan::Rank sender, plan::Rank receiver) {
    BoardLayout const layout(static_cast<std::uint32_t>(groups.size()));
    auto const at = cards_[receiver].board_offset + layout.lane_at(sender);
    return *reinterpret_cast<Lane*>(arenas[receiver]->mapping().at(at, layout.lane_bytes()).data());
  }

  BoardHead& board(plan::Rank rank) {
    auto const bytes = arenas[rank]->mapping().at(cards_[rank].board_offset, sizeof(BoardHead));
    return *reinterpret_cast<BoardHead*>(bytes.data());
  }

  std::vector<std::unique_ptr<memory::Arena>> arenas;
  memory::RegionRegistry regions;
  std::vector<std::unique_ptr<SharedGroup>> groups;

 private:
  std::vector<SharedCard> cards_;
};

inline void on_threads(std::uint32_t ranks, std::function<void(plan::Rank)> const& what) {
  std::vector<std::thread> threads;
  for (plan::Rank rank = 0; rank < ranks; ++rank) threads.emplace_back([&what, rank] { what(rank); });
  for (auto& thread : threads) thread.join();
}

}  // namespace chorus::engine::testing
