// The repair of one shard: an owner that serves, the requested number of copies, the current clients, balance.
#pragma once

#include "server/coordinator/placements/members.hpp"
#include "server/coordinator/placements/repair_queue.hpp"
#include "server/coordinator/placements/shard_owners.hpp"

namespace chorus::coordinator {

// Used on one thread. The tools and the parts outlive all calls.
class ShardRepair {
 public:
  struct Parts {
    ParameterRecords& records;
    Candidates const& candidates;
    RepairQueue& queue;
    ShardRoles& roles;
    ShardDrops& drops;
    ShardOwners& owners;
  };
  ShardRepair(PlacementTools const& tools, Parts parts) : tools_(tools), parts_(parts) {}

  // Lets a complete backup follow a lost owner, and removes a lost backup. A shard without either waits.
  boost::asio::awaitable<void> settle_losses(ParameterRecordPtr record, std::uint32_t shard);
  // Restores the requested number of copies on members of the group, tells the owner the current clients, and moves the
  // shard if another owner is better.
  boost::asio::awaitable<void> restore_replicas(ParameterRecordPtr record, std::uint32_t shard);

 private:
  class Attempts;
  enum class Added : std::uint8_t { complete, not_yet, refused };  // refused by the worker; another one may take it
  boost::asio::awaitable<Added> add_backup(ParameterRecordPtr record, std::uint32_t shard, api::Member backup,
                                           Attempts* attempts);
  boost::asio::awaitable<void> remove_backup(ParameterRecordPtr record, std::uint32_t shard);
  // Moves the owner without reducing the number of copies at any moment.
  boost::asio::awaitable<void> move_owner(ParameterRecordPtr record, std::uint32_t shard, api::Member to);
  boost::asio::awaitable<bool> until_complete(ParameterRecordPtr record, std::uint32_t shard, api::Member copy);

  PlacementTools const& tools_;
  Parts const parts_;
};

}  // namespace chorus::coordinator
