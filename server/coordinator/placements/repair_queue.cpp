#include "server/coordinator/placements/repair_queue.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/runtime/pause.hpp"

namespace chorus::coordinator {
namespace {

namespace asio = boost::asio;

}  // namespace

RepairQueue::RepairQueue(PlacementTools const& tools, ParameterRecords const& records)
    : tools_(tools),
      records_(records),
      urgent_{tools.patience.most_takeovers,
              &ShardPlacement::is_urgently_busy,
              &ShardPlacement::is_urgently_queued,
              {},
              {}},
      logged_{tools.patience.most_takeovers,
              &ShardPlacement::is_urgently_busy,
              &ShardPlacement::is_urgently_queued,
              {},
              {}},
      later_{tools.patience.most_moves, &ShardPlacement::is_busy, &ShardPlacement::is_queued, {}, {}},
      tasks_(tools.executor) {}

void RepairQueue::start(Repair urgent, Repair later) {
  urgent_.repair = logged_.repair = std::move(urgent);
  later_.repair = std::move(later);
}

asio::awaitable<void> RepairQueue::stop() {
  is_stopping_ = true;
  tasks_.cancel();
  co_await tasks_.join();
}

void RepairQueue::look_again(ShardKey const& key) {
  auto const record = records_.with(key);
  if (record == nullptr || is_stopping_ || is_held_) return;
  auto& shard = record->shards[key.second];
  auto const& membership = tools_.cluster.membership();
  auto const is_urgent = shard.is_urgent(membership);
  if (is_urgent && shard.waits(membership)) return;
  auto& lane = is_urgent ? urgent_lane_of(shard) : later_;
  if (!std::exchange(shard.*lane.queued, true)) lane.keys.push_back(key);
  begin_work(lane);
}

void RepairQueue::look_again_later(ParameterRecordPtr const& record, std::uint32_t number) {
  if (std::exchange(record->shards[number].is_looked_at_later, true)) return;
  tasks_.spawn("somebody else for " + record->parameter.name, wait_and_look(record, number));
}

asio::awaitable<void> RepairQueue::wait_and_look(ParameterRecordPtr record, std::uint32_t number) {
  co_await http::pause(tools_.patience.second_thoughts);
  record->shards[number].is_looked_at_later = false;
  if (!record->is_deleted) look_again({record->parameter.name, number});
}

void RepairQueue::begin_work(Lane& lane) {
  // Copies wait until every shard has an owner that serves.
  if (&lane == &later_ && urgent_.working > 0) return;
  if (lane.keys.empty() || lane.working >= lane.most) return;
  ++lane.working;
  tasks_.spawn("placements", work_off(&lane));
}

asio::awaitable<void> RepairQueue::work_off(Lane* lane) {
  while (!lane->keys.empty()) {
    // Most shards need nothing: thousands of looks without a pause would hold up leases.
    co_await asio::post(tools_.executor, asio::use_awaitable);
    if (lane->keys.empty()) break;
    auto const key = lane->keys.front();
    lane->keys.pop_front();
    auto const record = records_.with(key);
    if (record == nullptr) continue;
    record->shards[key.second].*lane->queued = false;
    if (!record->is_established) continue;
    auto& busy = record->shards[key.second].*lane->busy;
    if (busy) {
      record->changed.notify_all();  // its repair may be pausing
      continue;
    }
    busy = true;
    co_await lane->repair(record, key.second);
    busy = false;
    if (lane != &later_) look_again(key);
  }
  end_work(*lane);
}

void RepairQueue::end_work(Lane& lane) {
  --lane.working;
  begin_work(lane);
  for (std::size_t i = 0; i < later_.most; ++i) begin_work(later_);
}

asio::awaitable<void> RepairQueue::pause(ParameterRecordPtr record, std::uint32_t number, bool is_urgent,
                                         std::chrono::milliseconds length) {
  auto& lane = is_urgent ? urgent_lane_of(record->shards[number]) : later_;
  end_work(lane);
  co_await record->changed.wait_until(std::chrono::steady_clock::now() + length);
  ++lane.working;
}

}  // namespace chorus::coordinator
