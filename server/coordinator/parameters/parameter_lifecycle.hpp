// The beginning and the end of a parameter: its shards are put in place, and dropped.
#pragma once

#include "base/runtime/task_group.hpp"
#include "server/coordinator/placements/repair_queue.hpp"
#include "server/coordinator/placements/shard_drops.hpp"
#include "server/coordinator/placements/shard_roles.hpp"

namespace chorus::coordinator {

// Used on one thread. The tools and the parts outlive stop().
class ParameterLifecycle {
 public:
  struct Parts {
    ParameterRecords& records;
    RepairQueue& queue;
    ShardRoles& roles;
    ShardDrops& drops;
  };
  ParameterLifecycle(PlacementTools const& tools, Parts parts) : tools_(tools), parts_(parts), tasks_(tools.executor) {}

  // Begins to put the shards of a placed parameter in place. In the end the record is either established, or deleted
  // and has problems.
  void begin(ParameterRecordPtr const& record);
  // Deletes the parameter; its workers drop their shards.
  void end(ParameterRecordPtr record);

  boost::asio::awaitable<void> stop();

 private:
  boost::asio::awaitable<void> establish(ParameterRecordPtr record);
  boost::asio::awaitable<std::optional<http::Problem>> settle_checkpoint(ParameterRecordPtr record);
  boost::asio::awaitable<void> establish_shard(ParameterRecordPtr record, std::uint32_t shard);

  PlacementTools const& tools_;
  Parts const parts_;
  http::TaskGroup tasks_;
};

}  // namespace chorus::coordinator
