// Shards that move although nobody is lost: to whom has joined, and away from who leaves.
#include <algorithm>
#include <boost/asio/use_awaitable.hpp>

#include "server/coordinator/parameter_directory.hpp"

namespace chorus::coordinator {
namespace {

namespace asio = boost::asio;
using Clock = std::chrono::steady_clock;

}  // namespace

// Its load counts from now on, so that nobody else chooses the same worker for the same reason.
void ParameterDirectory::set_incoming(RecordPtr const& record, std::uint32_t number,
                                      std::optional<api::Member> member) {
  auto& shard = record->shards[number];
  Key const key(record->parameter.name, number);
  if (shard.incoming) {
    load_[shard.incoming->worker] -= load_of(*record, number);
    shards_on_[shard.incoming->worker].erase(key);
  }
  shard.incoming = std::move(member);
  if (shard.incoming) {
    load_[shard.incoming->worker] += load_of(*record, number);
    shards_on_[shard.incoming->worker].insert(key);
  }
}

// The newcomer is filled while owner and backup go on as they are. When it has everything it becomes the owner, and the
// backup, which has everything too, follows it from there.
asio::awaitable<bool> ParameterDirectory::move_owner(RecordPtr record, std::uint32_t number, api::Member to) {
  auto& shard = record->shards[number];
  auto const& name = record->parameter.name;
  set_incoming(record, number, to);
  draw_epoch(*record, number);
  auto problem = co_await tell(record, number, to, false, false);
  if (!problem && shard.owner) problem = co_await tell(record, number, *shard.owner, true, false, true);
  if (!problem && shard.backup) problem = co_await tell(record, number, *shard.backup, false, false, true);
  auto is_moved = false;
  if (!problem) is_moved = co_await until_complete(record, number, to);
  is_moved = is_moved && shard.owner && shard.incoming && !record->is_deleted;
  auto const before = shard.owner;
  if (is_moved) {
    draw_epoch(*record, number);
    auto const epoch = shard.epoch;
    problem = co_await tell(record, number, to, true, false, true);
    is_moved = !problem && !record->is_deleted && shard.epoch == epoch;
  }
  set_incoming(record, number, std::nullopt);
  if (record->is_deleted) co_return false;
  if (!is_moved || !before) {
    tools_.log.warn("parameter {} shard={} stays where it is: {}", name, number,
                    problem ? problem->detail : to.worker + " was not filled");
    tasks_.spawn("drop a shard of " + name, drop(to, name, number, shard.epoch));
    shard.clients_epoch = Shard::never_told;
    co_return false;
  }
  auto const backup = shard.backup;
  set(record, number, true, to);
  keep(*record, number);
  tools_.log.info("parameter {} shard={} epoch={} owner={} before={}", name, number, shard.epoch, to.worker,
                  before->worker);
  tasks_.spawn("drop a shard of " + name, drop(*before, name, number, shard.epoch));
  if (!backup) co_return true;
  shard.is_backup_complete = false;
  problem = co_await tell(record, number, *backup, false, false, true);
  auto follows = false;
  if (!problem) follows = co_await until_complete(record, number, *backup);
  if (follows && shard.backup && shard.backup->worker == backup->worker) shard.is_backup_complete = true;
  keep(*record, number);
  co_return true;
}

asio::awaitable<std::size_t> ParameterDirectory::hand_over(std::string worker, std::string incarnation,
                                                           TimePoint deadline) {
  auto const left = [&]() -> std::size_t {
    auto const found = shards_on_.find(worker);
    return found == shards_on_.end() ? 0 : found->second.size();
  };
  leaving_.insert({worker, incarnation});
  auto const can_go = [&](Key const& key) {
    auto const record = records_.find(key.first);
    return record != records_.end() && !ready_members(record->second->parameter.group).empty();
  };
  auto const keys = left() > 0 ? shards_on_.at(worker) : std::set<Key>();
  for (auto const& key : keys) look_again(key);
  while (left() > 0 && Clock::now() < deadline && !is_stopping_) {
    auto const& present = shards_on_.at(worker);
    if (std::ranges::none_of(present, can_go)) break;
    co_await pause(std::chrono::milliseconds(10));
  }
  leaving_.erase({worker, incarnation});
  co_return left();
}

}  // namespace chorus::coordinator
