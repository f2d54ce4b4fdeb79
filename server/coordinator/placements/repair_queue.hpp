// The shards whose placement has to be looked at. Shards without an owner come first, many at a time; copies and moves
// follow, few at a time. They do not wait for shards with a log, whose owner may read or write it for minutes, nor for
// repairs that pause.
#pragma once

#include <deque>
#include <functional>

#include "base/runtime/task_group.hpp"
#include "server/coordinator/placements/parameter_records.hpp"

namespace chorus::coordinator {

// Used on one thread. The objects in the constructor outlive stop().
class RepairQueue {
 public:
  using Repair = std::function<boost::asio::awaitable<void>(ParameterRecordPtr record, std::uint32_t shard)>;

  RepairQueue(PlacementTools const& tools, ParameterRecords const& records);

  // Called once, before the first look_again(). Each function repairs one shard, as far as it can.
  void start(Repair urgent, Repair later);
  boost::asio::awaitable<void> stop();

  // While the queue is held, look_again() does nothing.
  void hold() { is_held_ = true; }
  void release() { is_held_ = false; }
  [[nodiscard]] bool is_held() const { return is_held_; }

  // Queues a shard for a repair; unknown shards are ignored.
  void look_again(ShardKey const& key);
  // The same after a while, once for several calls.
  void look_again_later(ParameterRecordPtr const& record, std::uint32_t shard);

  // Between two attempts of a repair: other shards are repaired meanwhile. Ends early when this parameter has to be
  // looked at again. is_urgent: in the first function of start().
  boost::asio::awaitable<void> pause(ParameterRecordPtr record, std::uint32_t shard, bool is_urgent,
                                     std::chrono::milliseconds length);

 private:
  struct Lane {
    std::size_t most;  // repairs at the same time
    bool ShardPlacement::*busy;
    bool ShardPlacement::*queued;
    Repair repair;
    std::deque<ShardKey> keys;
    std::size_t working = 0;
  };
  [[nodiscard]] Lane& urgent_lane_of(ShardPlacement const& shard) { return shard.has_log ? logged_ : urgent_; }
  void begin_work(Lane& lane);
  void end_work(Lane& lane);
  boost::asio::awaitable<void> work_off(Lane* lane);
  boost::asio::awaitable<void> wait_and_look(ParameterRecordPtr record, std::uint32_t shard);

  PlacementTools const& tools_;
  ParameterRecords const& records_;
  Lane urgent_, logged_, later_;
  bool is_held_ = false, is_stopping_ = false;
  http::TaskGroup tasks_;
};

}  // namespace chorus::coordinator
