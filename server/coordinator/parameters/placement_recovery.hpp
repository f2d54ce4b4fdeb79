// Compares the journal's placements with the shards that workers report: after a restart of the coordinator, and when a
// worker comes back.
//
// A placement is in the journal before any worker hears of it, so the state of a worker is usually not newer than the
// journal. It may be older if the worker was not told in time. It may be newer if the result was not written any more:
// a backup has taken over, or is complete.
#pragma once

#include "server/coordinator/parameters/parameter_lifecycle.hpp"

namespace chorus::coordinator {

// Used on one thread. The tools and the parts outlive stop().
class PlacementRecovery {
 public:
  struct Parts {
    ParameterRecords& records;
    RepairQueue& queue;
    ShardDrops& drops;
    ParameterLifecycle& lifecycle;
  };
  PlacementRecovery(PlacementTools const& tools, Parts parts);

  // Begins to update all placements to the state of the workers. The queue is held before the shards are known.
  void begin();
  // Begins to drop the copies of a worker that was away, as far as they are not needed any more.
  void tidy(std::string const& worker);

  boost::asio::awaitable<void> stop();

 private:
  struct Survey;
  boost::asio::awaitable<void> recover();
  boost::asio::awaitable<void> tidy_when_recovered(std::string worker);
  boost::asio::awaitable<void> ask_what_it_has(std::shared_ptr<Survey> survey, api::Member worker);
  void compare(ParameterRecord& record, std::uint32_t shard, Survey const& survey);
  void dispose(Survey const& survey);

  PlacementTools const& tools_;
  Parts const parts_;
  http::TaskGroup tasks_;
};

}  // namespace chorus::coordinator
