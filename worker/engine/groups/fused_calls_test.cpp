// Lists of tensors in few calls: in pieces over shared memory, packed over links; both give the same sums.
#include "worker/engine/groups/fused_calls.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <thread>

#include "collectives/algorithms/catalogue.hpp"
#include "worker/engine/failure/errc.hpp"
#include "worker/engine/testing/tcp_fleet.hpp"

using namespace chorus;
using namespace chorus::engine;
using namespace chorus::engine::testing;

namespace {

constexpr std::uint32_t ranks = 3;

// Placement of a rank's tensors; it differs between ranks, and the sums are the same.
enum class Lie { in_one_block, apart_in_the_arena, elsewhere };

class Tensors {
 public:
  Tensors(std::vector<std::size_t> const& sizes, Lie lie, memory::Arena* arena) : arena_(arena) {
    std::size_t all = 0;
    for (auto const size : sizes) all += size;
    if (lie == Lie::in_one_block) take(all);
    auto* next = blocks_.empty() ? nullptr : blocks_.front().data();
    for (auto const size : sizes) {
      if (lie == Lie::apart_in_the_arena && arena != nullptr) {
        take(size);
        list_.push_back({blocks_.back().first(size * sizeof(float)), Dtype::f32});
      } else if (next != nullptr) {
        list_.push_back({{next, size * sizeof(float)}, Dtype::f32});
        next += size * sizeof(float);
      } else {
        own_.emplace_back(size);
        list_.push_back({std::as_writable_bytes(std::span(own_.back())), Dtype::f32});
      }
    }
  }
  ~Tensors() {
    if (arena_ != nullptr)
      for (auto const& block : blocks_) arena_->free(block.data());
  }
  Tensors(Tensors const&) = delete;
  Tensors& operator=(Tensors const&) = delete;

  std::span<FusedTensor const> list() const { return list_; }
  // Element i of tensor t becomes factor * (t + i % 5).
  void fill(float factor) {
    each([&](float& x, std::size_t t, std::size_t i) { x = factor * static_cast<float>(t + i % 5); });
  }
  bool holds(float factor) {
    bool right = true;
    each([&](float& x, std::size_t t, std::size_t i) { right = right && x == factor * static_cast<float>(t + i % 5); });
    return right;
  }

  std::vector<float> values() {
    std::vector<float> all;
    each([&](float& x, std::size_t, std::size_t) { all.push_back(x); });
    return all;
  }

 private:
  void take(std::size_t elements) {
    if (arena_ == nullptr) return;
    blocks_.push_back(arena_->allocate(std::max<std::size_t>(elements * sizeof(float), 1)).value());
  }
  template <class Visit>
  void each(Visit visit) {
    for (std::size_t t = 0; t < list_.size(); ++t) {
      std::span const values(reinterpret_cast<float*>(list_[t].bytes.data()), list_[t].bytes.size() / sizeof(float));
      for (std::size_t i = 0; i < values.size(); ++i) visit(values[i], t, i);
    }
  }
  memory::Arena* const arena_;
  std::vector<std::span<std::byte>> blocks_;
  std::vector<std::vector<float>> own_;
  std::vector<FusedTensor> list_;
};

int wrong_results(bool shares_memory) {
  TcpFleet fleet(ranks, {}, shares_memory ? make_arenas(ranks) : Arenas());
  engine::PlanCache cache(1 << 20);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (plan::Rank rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      memory::RegionRegistry regions;  // one per member, as in processes of their own: the memory of others lies at
                                       // other addresses
      auto* const arena = shares_memory ? &fleet.arena(rank) : nullptr;
      Group group(fleet.membership("g", rank), fleet.plane(rank), cache,
                  GroupMemory{&algorithms::direct, arena, &regions});
      FusedCalls calls(group, rank, arena, {.bucket_bytes = 40000, .alone_bytes = 30000});
      std::vector<std::size_t> const sizes{1, 700, 0, 1000, 3, 9000, 2500, 1024, 1, 1, 6000, 512};
      for (unsigned turn = 0; turn < 9; ++turn) {
        Tensors tensors(sizes, static_cast<Lie>((turn + rank) % 3), arena);
        for (auto const* algorithm : {&algorithms::mesh, &algorithms::allpairs, &algorithms::ring, &algorithms::tree}) {
          auto const choose = [&](std::uint64_t, Dtype) -> Result<CallOptions> {
            CallOptions options;
            options.algorithm = algorithm;
            return options;
          };
          auto const mine = static_cast<float>(rank + 1);
          tensors.fill(mine);
          auto const summed = calls.run(Op::all_reduce, tensors.list(), ReduceOp::sum, choose);
          if (summed.status.has_error() || !tensors.holds(6)) ++wrong;
          if (algorithm != &algorithms::tree) continue;
          tensors.fill(mine);
          auto const sent = calls.run(Op::broadcast, tensors.list(), ReduceOp::sum, choose);
          if (sent.status.has_error() || !tensors.holds(1)) ++wrong;
          tensors.fill(mine);
          auto const reduced = calls.run(Op::reduce, tensors.list(), ReduceOp::sum, choose);
          if (reduced.status.has_error() || !tensors.holds(rank == 0 ? 6 : mine)) ++wrong;
        }
      }
    });
  for (auto& thread : threads) thread.join();
  return wrong;
}

// One member has the list of the other, and one more tensor.
int refusals_of_a_longer_list() {
  TcpFleet fleet(2, {});
  engine::PlanCache cache(1 << 20);
  std::atomic<int> refused{0};
  std::vector<std::thread> threads;
  for (plan::Rank rank = 0; rank < 2; ++rank)
    threads.emplace_back([&, rank] {
      Group group(fleet.membership("g", rank), fleet.plane(rank), cache);
      FusedCalls calls(group, rank, nullptr, {.bucket_bytes = 4096, .alone_bytes = 3000});
      auto const sizes = rank == 0 ? std::vector<std::size_t>{1000, 1000} : std::vector<std::size_t>{1000, 1000, 1000};
      Tensors tensors(sizes, Lie::elsewhere, nullptr);
      auto const result =
          calls.run(Op::all_reduce, tensors.list(), ReduceOp::sum, [](auto, auto) -> Result<CallOptions> {
            CallOptions options;
            options.algorithm = &algorithms::mesh;
            return options;
          });
      if (result.status.has_error() && result.status.error().code == EngineErrc::plan_mismatch) ++refused;
    });
  for (auto& thread : threads) thread.join();
  return refused;
}

int wrong_results_of_a_tensor_listed_twice() {
  TcpFleet fleet(2, {}, make_arenas(2));
  engine::PlanCache cache(1 << 20);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (plan::Rank rank = 0; rank < 2; ++rank)
    threads.emplace_back([&, rank] {
      memory::RegionRegistry regions;
      Group group(fleet.membership("g", rank), fleet.plane(rank), cache,
                  GroupMemory{&algorithms::direct, &fleet.arena(rank), &regions});
      FusedCalls calls(group, rank, &fleet.arena(rank));
      Tensors tensors({5000, 3000}, Lie::apart_in_the_arena, &fleet.arena(rank));
      std::vector<FusedTensor> const twice{tensors.list()[0], tensors.list()[1], tensors.list()[0]};
      for (int turn = 0; turn < 20; ++turn) {
        tensors.fill(static_cast<float>(rank + 1));
        auto const result = calls.run(Op::all_reduce, twice, ReduceOp::sum, [](auto, auto) -> Result<CallOptions> {
          CallOptions options;
          options.algorithm = &algorithms::allpairs;
          return options;
        });
        if (result.status.has_error() || !tensors.holds(3)) ++wrong;
      }
    });
  for (auto& thread : threads) thread.join();
  return wrong;
}

// Both members pass 20 elements as the size, and memory for 10.
int refusals_of_pieces_that_are_too_short() {
  TcpFleet fleet(2, {}, make_arenas(2));
  engine::PlanCache cache(1 << 20);
  std::atomic<int> refused{0};
  std::vector<std::thread> threads;
  for (plan::Rank rank = 0; rank < 2; ++rank)
    threads.emplace_back([&, rank] {
      memory::RegionRegistry regions;
      Group group(fleet.membership("g", rank), fleet.plane(rank), cache,
                  GroupMemory{&algorithms::direct, &fleet.arena(rank), &regions});
      std::vector<std::span<std::byte>> const pieces{fleet.arena(rank).allocate(6 * sizeof(float)).value(),
                                                     fleet.arena(rank).allocate(4 * sizeof(float)).value()};
      CallOptions options;
      options.algorithm = &algorithms::ring;
      options.in_place = true;
      if (group.meet(options.timeout).status.has_error()) return;
      auto const result = group.run_in_pieces(Op::all_reduce, {}, pieces, Dtype::f32, ReduceOp::sum, 20, options);
      if (result.status.has_error() && result.status.error().detail.find("pieces of 40") != std::string::npos)
        ++refused;
    });
  for (auto& thread : threads) thread.join();
  return refused;
}

// Ranks whose result of a broadcast by codes is not the root's; -1: the root's values are not those of codes.
int different_results_of_codes(bool shares_memory) {
  TcpFleet fleet(ranks, {}, shares_memory ? make_arenas(ranks) : Arenas());
  engine::PlanCache cache(1 << 20);
  std::array<std::vector<float>, ranks> results;
  std::vector<std::thread> threads;
  for (plan::Rank rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      memory::RegionRegistry regions;
      auto* const arena = shares_memory ? &fleet.arena(rank) : nullptr;
      Group group(fleet.membership("g", rank), fleet.plane(rank), cache,
                  GroupMemory{&algorithms::direct, arena, &regions});
      FusedCalls calls(group, rank, arena, {.bucket_bytes = 40000, .alone_bytes = 30000});
      Tensors tensors({700, 1000}, Lie::elsewhere, nullptr);
      tensors.fill(rank == 1 ? 0.1f : 0);
      auto const sent = calls.run(Op::broadcast, tensors.list(), ReduceOp::sum, [](auto, auto) -> Result<CallOptions> {
        CallOptions options;
        options.algorithm = &algorithms::tree;
        options.root = 1;
        options.compression = WireFormat::bf16;
        return options;
      });
      if (sent.status.has_value()) results[rank] = tensors.values();
    });
  for (auto& thread : threads) thread.join();
  if (results[1].empty() || results[1][1] == 0.1f) return -1;
  return static_cast<int>(std::ranges::count_if(results, [&](auto const& each) { return each != results[1]; }));
}

// What all ranks together have reduced for two lists of one tensor and for a list of both, by the same algorithm.
std::array<std::uint64_t, 2> bytes_reduced_for(std::size_t elements) {
  TcpFleet fleet(ranks, {}, make_arenas(ranks));
  engine::PlanCache cache(1 << 20);
  std::array<std::atomic<std::uint64_t>, 2> reduced{};
  std::vector<std::thread> threads;
  for (plan::Rank rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      memory::RegionRegistry regions;
      Group group(fleet.membership("g", rank), fleet.plane(rank), cache,
                  GroupMemory{&algorithms::direct, &fleet.arena(rank), &regions});
      FusedCalls calls(group, rank, &fleet.arena(rank), {.bucket_bytes = 40000, .alone_bytes = 30000});
      Tensors tensors({elements, elements}, Lie::apart_in_the_arena, &fleet.arena(rank));
      auto const ring = [](std::uint64_t, Dtype) -> Result<CallOptions> {
        CallOptions options;
        options.algorithm = &algorithms::ring;
        return options;
      };
      auto const list = tensors.list();
      for (auto const& one : {list.first(1), list.last(1)})
        reduced[0] += calls.run(Op::all_reduce, one, ReduceOp::sum, ring).statistics.reduced.bytes;
      reduced[1] += calls.run(Op::all_reduce, list, ReduceOp::sum, ring).statistics.reduced.bytes;
    });
  for (auto& thread : threads) thread.join();
  return {reduced[0], reduced[1]};
}

}  // namespace

TEST_CASE("a broadcast of a list by codes leaves the same bits on all ranks, the root's too") {
  for (bool const shares_memory : {false, true}) CHECK(different_results_of_codes(shares_memory) == 0);
}

TEST_CASE("a list counts what its calls have reduced") {
  auto const [one_by_one, as_a_list] = bytes_reduced_for(300'000);
  CHECK(one_by_one > 0);
  CHECK(as_a_list == one_by_one);
}

TEST_CASE("pieces that are shorter than the call says are refused, and nothing behind them is touched") {
  CHECK(refusals_of_pieces_that_are_too_short() == 2);
}

TEST_CASE("a tensor that is listed twice gets the same sum as one that is listed once") {
  CHECK(wrong_results_of_a_tensor_listed_twice() == 0);
}

TEST_CASE("lists of tensors over shared memory, wherever they lie") { CHECK(wrong_results(true) == 0); }

TEST_CASE("lists of tensors over links") { CHECK(wrong_results(false) == 0); }

TEST_CASE("a list that begins like another one is refused in its first part, not taken for it") {
  CHECK(refusals_of_a_longer_list() == 2);
}
