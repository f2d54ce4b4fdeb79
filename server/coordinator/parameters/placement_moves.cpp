// Filling of copies, and moves of shards without a loss: to workers that have joined, and away from workers that leave.
#include <algorithm>
#include <boost/asio/use_awaitable.hpp>

#include "server/coordinator/parameters/parameter_directory.hpp"

namespace chorus::coordinator {
namespace {

namespace asio = boost::asio;
using Clock = std::chrono::steady_clock;

bool is_placed(std::optional<api::Member> const& placed, api::Member const& member) {
  return placed && placed->worker == member.worker && placed->incarnation == member.incarnation;
}

}  // namespace

// The load of the incoming owner counts at once, so that no other shard chooses the same worker for the same reason.
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

// Meanwhile the owner may be told to continue without this backup, which is then no longer filled. Or one of the two
// may miss an epoch: then the backup takes nothing until both are told again.
asio::awaitable<bool> ParameterDirectory::until_complete(RecordPtr record, std::uint32_t number, api::Member backup) {
  constexpr std::chrono::milliseconds first_pause{5}, longest_pause{250};
  auto const deadline = Clock::now() + patience_.settling;
  auto& shard = record->shards[number];
  for (auto between = first_pause; Clock::now() < deadline; between = std::min(between * 2, longest_pause)) {
    if (record->is_deleted || !shard.owner || !is_ready(*shard.owner) || !is_ready(backup)) co_return false;
    if (!is_placed(shard.backup, backup) && !is_placed(shard.incoming, backup)) co_return false;
    if (shard.clients_epoch == Shard::never_told && !shard.is_unconfirmed) {
      static_cast<void>(co_await confirm_owner(record, number));
      co_await pause(between);
      continue;
    }
    auto const owner = *shard.owner;
    auto const said = co_await tools_.workers.look_at_shard(owner.url, record->parameter.name, number,
                                                            Clock::now() + patience_.assignment);
    if (said.has_error()) {
      tools_.cluster.suspect(owner.worker, owner.incarnation);
    } else if (said.value().has_value()) {
      auto const& complete = said.value().value().backups_complete;
      if (std::ranges::find(complete, backup.worker) != complete.end() && is_ready(backup)) co_return true;
    }
    co_await pause(between);
  }
  co_return false;
}

// The newcomer is filled while owner and backup continue. When it is complete it becomes the owner, and the complete
// backup follows it from there.
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
  set_incoming(record, number, std::nullopt);
  if (record->is_deleted) co_return false;
  if (!is_moved) {
    tools_.log.warn("parameter {} shard={} stays where it is: {}", name, number,
                    problem ? problem->detail : to.worker + " was not filled");
    tasks_.spawn("drop a shard of " + name, drop(to, name, number, shard.epoch));
    shard.clients_epoch = Shard::never_told;
    co_return false;
  }
  auto const before = *shard.owner;
  auto const backup = shard.backup;
  shard.is_backup_complete = false;
  hand_to(record, number, to);
  problem = co_await confirm_owner(record, number);
  if (record->is_deleted || !shard.owner || shard.is_unconfirmed || shard.owner->worker != to.worker) co_return false;
  tools_.log.info("parameter {} shard={} epoch={} owner={} before={}", name, number, shard.epoch, to.worker,
                  before.worker);
  if (!backup) co_return true;
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
