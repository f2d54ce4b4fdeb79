// The directory in the journal, and its recovery when a coordinator is restarted.
//
// A placement is in the journal before any worker hears of it, so the state of a worker is usually not newer than the
// journal. It may be older if the worker was not told in time. It may be newer if the result was not written any more:
// a backup has taken over, or is complete.
#include <algorithm>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

#include "http/api/cluster/membership.hpp"
#include "http/wire/errc.hpp"
#include "server/coordinator/parameters/parameter_directory.hpp"

namespace chorus::coordinator {
namespace {

namespace asio = boost::asio;
using Clock = std::chrono::steady_clock;

std::optional<api::Member> without_roles(std::optional<api::Member> member) {
  if (member) member->roles.clear();
  return member;
}

bool is_listed(std::vector<std::string> const& workers, std::string const& worker) {
  return std::ranges::find(workers, worker) != workers.end();
}

}  // namespace

// The shards that workers report.
struct ParameterDirectory::Survey {
  explicit Survey(asio::any_io_executor executor) : changed(std::move(executor)) {}
  struct Claim {
    api::Member worker;
    api::ShardStatus status;
  };
  std::map<Key, std::vector<Claim>> claims;
  std::size_t pending = 0;
  http::Condition changed;

  // Claim of the highest epoch; null if no worker claims to own the shard.
  [[nodiscard]] Claim const* owner(Key const& key) const {
    auto const found = claims.find(key);
    Claim const* best = nullptr;
    if (found != claims.end())
      for (auto const& claim : found->second)
        if (claim.status.role == "owner" && (best == nullptr || claim.status.epoch > best->status.epoch)) best = &claim;
    return best;
  }
};

void ParameterDirectory::keep(Record const& record) {
  if (!tools_.journal.on_disk() || record.is_deleted) return;
  tools_.journal.write(row_of(JournalParameter{record.request, record.parameter, record.checkpoint,
                                               record.clients_epoch, record.is_established}));
}

void ParameterDirectory::keep(Record const& record, std::uint32_t number) {
  if (!tools_.journal.on_disk() || record.is_deleted) return;
  auto const& shard = record.shards[number];
  tools_.journal.write(row_of(JournalShard{
      record.parameter.name, number, shard.range.begin, shard.range.end, shard.epoch, without_roles(shard.owner),
      without_roles(shard.backup), without_roles(shard.incoming), shard.is_backup_complete, shard.clients_epoch,
      without_roles(shard.former), shard.owner_has_ended, shard.backup_has_ended, shard.backup_epoch}));
}

// The last epoch of the name is kept: no other parameter of this name gets it again.
void ParameterDirectory::forget(Record const& record) {
  auto const& name = record.parameter.name;
  auto const forgotten = epochs_.retire(name);
  if (!tools_.journal.on_disk()) return;
  tools_.journal.write(without(Table::parameters, name));
  for (std::uint32_t i = 0; i < record.shards.size(); ++i) tools_.journal.write(without_shard(name, i));
  if (forgotten) {
    tools_.journal.write(without(Table::parameter_epochs, *forgotten));
    tools_.journal.write(row_of(Counter::parameter_epoch_floor, epochs_.floor()));
  }
  if (forgotten != name) tools_.journal.write(row_of_parameter(name, epochs_.kept(name)));
}

void ParameterDirectory::restore(JournalState const& state) {
  auto const floor = state.counters.find(Counter::parameter_epoch_floor);
  epochs_.restore(state.parameter_epochs,
                  floor == state.counters.end() ? 0 : static_cast<std::uint32_t>(floor->second));
  for (auto const& kept : state.parameters) {
    auto const record = std::make_shared<Record>(tools_.executor);
    record->request = kept.request;
    record->parameter = kept.parameter;
    record->checkpoint = kept.checkpoint;
    record->clients_epoch = kept.clients_epoch;
    record->is_established = kept.established;
    record->is_resumed = true;
    records_[kept.parameter.name] = record;
    of_group_[kept.parameter.group].insert(kept.parameter.name);
  }
  for (auto const& kept : state.shards) {
    auto const found = records_.find(kept.parameter);
    if (found == records_.end() || found->second->shards.size() != kept.shard) continue;
    auto const& record = found->second;
    auto& shard = record->shards.emplace_back();
    shard.range = {kept.begin, kept.end};
    shard.epoch = kept.epoch;
    // A move starts again if it is still useful.
    shard.clients_epoch = kept.incoming ? Shard::never_told : kept.clients_epoch;
    set(record, kept.shard, true, kept.owner);
    set(record, kept.shard, false, kept.backup);
    shard.is_backup_complete = kept.backup_complete;
    shard.former = kept.former;
    shard.is_unconfirmed = kept.former.has_value();
    shard.owner_has_ended = kept.owner_ended;
    shard.backup_has_ended = kept.backup_ended;
    shard.backup_epoch = kept.backup_epoch.value_or(kept.epoch);
    record->parameter.epoch = std::max(record->parameter.epoch, kept.epoch);
    epochs_.seen(kept.parameter, kept.epoch);
  }
  // Nothing else of these parameters had reached the disk.
  std::erase_if(records_, [](auto const& entry) { return entry.second->shards.empty(); });
}

void ParameterDirectory::recover() {
  if (!tools_.journal.on_disk()) return;
  is_recovering_ = true;
  tasks_.spawn("recovery of placements", recover_placements());
}

asio::awaitable<void> ParameterDirectory::recover_placements() {
  auto const survey = std::make_shared<Survey>(tools_.executor);
  for (auto const& [id, worker] : tools_.cluster.membership().all()) {
    if (!worker.ready) continue;
    ++survey->pending;
    api::Member const member{0, id, api::to_hex(worker.incarnation), worker.url, worker.locality, {}};
    tasks_.spawn("what " + id + " has", ask_what_it_has(survey, member));
  }
  while (survey->pending > 0) co_await survey->changed.wait_until(TimePoint::max());
  dispose(*survey);
  is_recovering_ = false;
  auto const present = records_;
  for (auto const& [name, record] : present) {
    auto const before = record->clients_epoch;
    update_clients(*record);
    if (record->clients_epoch != before) keep(*record);
    if (!record->is_established) {
      // Shards that exist already have the same epoch, and are not made again.
      if (record->is_resumed) tasks_.spawn("parameter " + name, establish(record));
      continue;
    }
    for (std::uint32_t i = 0; i < record->shards.size(); ++i) {
      compare(record, i, *survey);
      look_again({name, i});
    }
  }
}

asio::awaitable<void> ParameterDirectory::ask_what_it_has(std::shared_ptr<Survey> survey, api::Member worker) {
  auto const deadline = Clock::now() + patience_.recovery;
  std::string cursor;
  for (;;) {
    auto const said = co_await tools_.workers.list_shards(worker.url, cursor, deadline);
    if (said.has_error() || said.value().has_error()) {
      auto const is_gone = said.has_error() && said.error().code == http::HttpErrc::connect_failed;
      if (is_gone) tools_.cluster.suspect(worker.worker, worker.incarnation);
      if (is_gone || Clock::now() + patience_.repetition >= deadline) break;
      co_await pause(patience_.repetition);
      continue;
    }
    auto const& page = said.value().value();
    for (auto const& status : page.items) survey->claims[{status.parameter, status.shard}].push_back({worker, status});
    if (!page.next_cursor) break;
    cursor = *page.next_cursor;
  }
  --survey->pending;
  survey->changed.notify_all();
}

// Updates the journal's placement to the state of the workers.
void ParameterDirectory::compare(RecordPtr const& record, std::uint32_t number, Survey const& survey) {
  auto& shard = record->shards[number];
  auto const* owner = survey.owner({record->parameter.name, number});
  auto const is_same = owner != nullptr && shard.owner && owner->worker.worker == shard.owner->worker &&
                       owner->worker.incarnation == shard.owner->incarnation;
  if (owner == nullptr || !shard.owner || (!is_same && owner->status.epoch < shard.epoch)) {
    shard.clients_epoch = Shard::never_told;  // owner and backup are told their roles again
    return;
  }
  if (!is_same) {
    tools_.log.info("parameter {} shard={} epoch={} was taken over by {}", record->parameter.name, number,
                    owner->status.epoch, owner->worker.worker);
    set(record, number, false, std::nullopt);
    set(record, number, true, owner->worker);
  }
  if (shard.backup) shard.is_backup_complete = is_listed(owner->status.backups_complete, shard.backup->worker);
  if (owner->status.epoch != shard.epoch) shard.clients_epoch = Shard::never_told;
  // After a restart a worker whose lease had ended reports itself as unconfirmed. An heir that claims to own the shard
  // is confirmed.
  shard.is_unconfirmed |= owner->status.unconfirmed;
  if (is_same && shard.former && owner->status.epoch == shard.epoch && !owner->status.unconfirmed) {
    shard.superseded.emplace_back(*std::exchange(shard.former, std::nullopt), shard.epoch);
    shard.is_unconfirmed = false;
    drop_superseded(*record, number);
  }
  keep(*record, number);
}

// Drops copies that are not needed any more: of parameters that were deleted while the worker was not reachable, and of
// shards that have another owner since.
void ParameterDirectory::dispose(Survey const& survey) {
  for (auto const& [key, claims] : survey.claims) {
    auto const found = records_.find(key.first);
    auto const is_known = found != records_.end() && key.second < found->second->shards.size();
    if (!is_known && !epochs_.knows(key.first)) continue;  // of another coordinator
    for (auto const& claim : claims) {
      auto const& worker = claim.worker.worker;
      auto const holds = [&](std::optional<api::Member> const& member) { return member && member->worker == worker; };
      if (is_known) {
        auto& shard = found->second->shards[key.second];
        auto const is_newer = claim.status.epoch >= shard.epoch && claim.status.role == "owner";
        if (holds(shard.owner) || holds(shard.backup) || holds(shard.incoming) || holds(shard.former) || is_newer)
          continue;
        if (shard.is_unconfirmed || !has_owner(shard)) {
          shard.superseded.emplace_back(claim.worker, claim.status.epoch);
          continue;
        }
      }
      tasks_.spawn("drop an orphan of " + key.first, drop(claim.worker, key.first, key.second, claim.status.epoch));
    }
  }
}

void ParameterDirectory::drop_superseded(Record& record, std::uint32_t number) {
  auto const& name = record.parameter.name;
  for (auto const& [holder, epoch] : std::exchange(record.shards[number].superseded, {}))
    tasks_.spawn("drop a copy of " + name, drop(holder, name, number, epoch));
}

// A worker that was away may have copies that are not needed any more.
asio::awaitable<void> ParameterDirectory::tidy(std::string worker) {
  while (is_recovering_) co_await pause(patience_.repetition);
  if (!epochs_.knows_any()) co_return;  // there were no parameters: no need to ask every joining worker
  auto const* now = tools_.cluster.membership().find(worker);
  if (now == nullptr || !now->ready) co_return;
  api::Member const member{0, worker, api::to_hex(now->incarnation), now->url, now->locality, {}};
  auto const survey = std::make_shared<Survey>(tools_.executor);
  survey->pending = 1;
  co_await ask_what_it_has(survey, member);
  dispose(*survey);
}

}  // namespace chorus::coordinator
