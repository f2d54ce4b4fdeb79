// The directory in the journal, and what is made of it when a coordinator is started again.
//
// A placement is in the journal before any worker hears of it, so what a worker has is never newer than what is known
// here; it may be older, if it was not told in time, or come to more, if what it has done was not noted any more: a
// backup that has taken over, or is complete.
#include <algorithm>
#include <boost/asio/use_awaitable.hpp>

#include "http/api/membership.hpp"
#include "http/errc.hpp"
#include "server/coordinator/parameter_directory.hpp"

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

// What workers say that they have.
struct ParameterDirectory::Survey {
  explicit Survey(asio::any_io_executor executor) : changed(std::move(executor)) {}
  struct Claim {
    api::Member worker;
    api::ShardStatus status;
  };
  std::map<Key, std::vector<Claim>> claims;
  std::size_t pending = 0;
  http::Condition changed;

  // Of the highest epoch; null: nobody says that it owns the shard.
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
  tools_.journal.write(row_of(
      KeptParameter{record.request, record.parameter, record.checkpoint, record.clients_epoch, record.is_established}));
}

void ParameterDirectory::keep(Record const& record, std::uint32_t number) {
  if (!tools_.journal.on_disk() || record.is_deleted) return;
  auto const& shard = record.shards[number];
  tools_.journal.write(row_of(KeptShard{record.parameter.name, number, shard.range.begin, shard.range.end, shard.epoch,
                                        without_roles(shard.owner), without_roles(shard.backup),
                                        without_roles(shard.incoming), shard.is_backup_complete, shard.clients_epoch}));
}

// Its name's last epoch stays: no other parameter of this name has the same again.
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

void ParameterDirectory::restore(KeptState const& state) {
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
    // A move begins anew, if it still is worth it.
    shard.clients_epoch = kept.incoming ? Shard::never_told : kept.clients_epoch;
    set(record, kept.shard, true, kept.owner);
    set(record, kept.shard, false, kept.backup);
    shard.is_backup_complete = kept.backup_complete;
    record->parameter.epoch = std::max(record->parameter.epoch, kept.epoch);
    epochs_.seen(kept.parameter, kept.epoch);
  }
  // Nothing of it had reached the disk when its first rows did.
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
  drop_orphans(*survey);
  is_recovering_ = false;
  auto const present = records_;
  for (auto const& [name, record] : present) {
    auto const before = record->clients_epoch;
    update_clients(*record);
    if (record->clients_epoch != before) keep(*record);
    if (!record->is_established) {
      // Shards that are there already are there under the same epoch, and are not made again.
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

// The journal's placement becomes what has come of it.
void ParameterDirectory::compare(RecordPtr const& record, std::uint32_t number, Survey const& survey) {
  auto& shard = record->shards[number];
  auto const* owner = survey.owner({record->parameter.name, number});
  auto const is_same = owner != nullptr && shard.owner && owner->worker.worker == shard.owner->worker &&
                       owner->worker.incarnation == shard.owner->incarnation;
  if (owner == nullptr || !shard.owner || (!is_same && owner->status.epoch < shard.epoch)) {
    shard.clients_epoch = Shard::never_told;  // whoever it is hears again what it is to do
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
  keep(*record, number);
}

// Shards whose deletion did not reach everybody, and copies that nobody waits for any more.
void ParameterDirectory::drop_orphans(Survey const& survey) {
  for (auto const& [key, claims] : survey.claims) {
    auto const found = records_.find(key.first);
    auto const is_known = found != records_.end() && key.second < found->second->shards.size();
    if (!is_known && !epochs_.knows(key.first)) continue;  // another coordinator's
    for (auto const& claim : claims) {
      auto const& worker = claim.worker.worker;
      auto const holds = [&](std::optional<api::Member> const& member) { return member && member->worker == worker; };
      if (is_known) {
        auto const& shard = found->second->shards[key.second];
        auto const is_newer = claim.status.epoch >= shard.epoch && claim.status.role == "owner";
        if (holds(shard.owner) || holds(shard.backup) || is_newer) continue;
        if (auto const* owner = survey.owner(key); owner == nullptr || owner->worker.worker == worker) continue;
      }
      tasks_.spawn("drop an orphan of " + key.first, drop(claim.worker, key.first, key.second, claim.status.epoch));
    }
  }
}

}  // namespace chorus::coordinator
