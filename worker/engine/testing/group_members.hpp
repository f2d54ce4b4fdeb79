// Members of a group that call in threads of their own, over links or in shared memory.
#pragma once

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "collectives/algorithms/catalogue.hpp"
#include "worker/engine/groups/group.hpp"
#include "worker/engine/testing/tcp_fleet.hpp"

namespace chorus::engine::testing {

inline constexpr std::uint32_t members = 3;

using MemberCall = std::function<int(Group& group, plan::Rank rank, memory::Arena* arena)>;

// Sum of the members' counts; every member calls in a thread of its own.
inline int of_all_members(bool shares_memory, MemberCall const& call) {
  TcpFleet fleet(members, {}, shares_memory ? make_arenas(members) : Arenas());
  engine::PlanCache cache(1 << 20);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (plan::Rank rank = 0; rank < members; ++rank)
    threads.emplace_back([&, rank] {
      memory::RegionRegistry regions;
      auto* const arena = shares_memory ? &fleet.arena(rank) : nullptr;
      Group group(fleet.membership("g", rank), fleet.plane(rank), cache,
                  GroupMemory{&algorithms::direct, arena, &regions});
      wrong += call(group, rank, arena);
    });
  for (auto& thread : threads) thread.join();
  return wrong;
}

}  // namespace chorus::engine::testing
