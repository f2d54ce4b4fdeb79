// Tells workers to drop copies of shards that are not needed any more.
#pragma once

#include "base/runtime/task_group.hpp"
#include "server/coordinator/placements/parameter_record.hpp"
#include "server/coordinator/placements/placement_tools.hpp"

namespace chorus::coordinator {

// Used on one thread. The tools outlive stop().
class ShardDrops {
 public:
  using Copy = ShardPlacement::Copy;

  explicit ShardDrops(PlacementTools const& tools);

  // These start to tell the holders, and return at once. A silent worker is asked for its shards when it joins again.
  void drop(std::string const& name, std::uint32_t shard, std::vector<Copy> copies);
  // Drops all copies of a parameter that is about to be deleted.
  void drop_all(ParameterRecord const& record);

  // Waits until no worker serves a deleted parameter of this name: two parameters of one name must not take pushes at
  // the same time. Problem: unavailable if a worker neither drops its shard nor loses its lease in time.
  boost::asio::awaitable<std::optional<http::Problem>> until_dropped(std::string name);
  // Waits until all leases of the workers that have the parameter have passed.
  boost::asio::awaitable<void> until_leases_end(ParameterRecordPtr record);

  boost::asio::awaitable<void> stop();

 private:
  boost::asio::awaitable<void> tell(std::string name, std::uint32_t shard, Copy copy);
  boost::asio::awaitable<void> drop_to_the_end(std::string name, std::uint32_t shard, Copy copy);

  PlacementTools const& tools_;
  std::map<std::string, std::size_t, std::less<>> dropping_;  // copies of deleted parameters that are still served
  http::Condition dropped_;
  bool is_stopping_ = false;
  http::TaskGroup tasks_;
};

}  // namespace chorus::coordinator
