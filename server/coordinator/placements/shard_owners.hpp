// Changes of the owner of one shard, and what the owner has to know. docs/explanation/parameters.md says why two owners
// never take pushes at once.
#pragma once

#include "server/coordinator/placements/shard_drops.hpp"
#include "server/coordinator/placements/shard_roles.hpp"

namespace chorus::coordinator {

// Used on one thread. The objects in the constructor outlive all calls.
class ShardOwners {
 public:
  ShardOwners(PlacementTools const& tools, ParameterRecords& records, ShardRoles& roles, ShardDrops& drops)
      : tools_(tools), records_(records), roles_(roles), drops_(drops) {}

  // Returns the problem after which it may be tried again: one of ShardRoles::tell, or one that is named here.
  using Attempt = boost::asio::awaitable<std::optional<http::Problem>>;

  // Tells the owner its role under a new epoch, then tells the backup the epoch. Problem: unavailable for an owner that
  // got a new lease meanwhile.
  Attempt confirm(ParameterRecordPtr record, std::uint32_t shard);
  // Tells the owner and the backup the current clients.
  Attempt tell_clients(ParameterRecordPtr record, std::uint32_t shard);
  // Makes the backup the owner; the shard then has no backup. Problem: parameter_lost for a backup that does not have
  // everything.
  Attempt promote(ParameterRecordPtr record, std::uint32_t shard);
  // Makes the heir, which has everything, the owner. An heir whose answer is lost may have taken pushes, so no other
  // worker owns the shard until the heir has denied it or ended.
  Attempt hand_to(ParameterRecordPtr record, std::uint32_t shard, api::Member heir);
  // Makes a new incarnation of the owner the owner, with the data of its log.
  Attempt recover(ParameterRecordPtr record, std::uint32_t shard, api::Member owner);
  // The heir does not have the shard, or has ended before it confirmed that it does.
  void return_to_former(ParameterRecordPtr const& record, std::uint32_t shard);

 private:
  PlacementTools const& tools_;
  ParameterRecords& records_;
  ShardRoles& roles_;
  ShardDrops& drops_;
};

}  // namespace chorus::coordinator
