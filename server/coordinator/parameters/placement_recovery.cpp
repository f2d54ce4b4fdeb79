#include "server/coordinator/parameters/placement_recovery.hpp"

#include <algorithm>
#include <utility>

#include "base/runtime/pause.hpp"
#include "http/wire/errc.hpp"
#include "server/coordinator/placements/members.hpp"

namespace chorus::coordinator {
namespace {

namespace asio = boost::asio;
using Clock = std::chrono::steady_clock;

bool is_listed(std::vector<std::string> const& workers, std::string const& worker) {
  return std::ranges::find(workers, worker) != workers.end();
}

}  // namespace

// The shards that workers report.
struct PlacementRecovery::Survey {
  explicit Survey(asio::any_io_executor executor) : changed(std::move(executor)) {}
  struct Claim {
    api::Member worker;
    api::ShardStatus status;
  };
  std::map<ShardKey, std::vector<Claim>> claims;
  std::size_t pending = 0;
  http::Condition changed;

  // Claim of the highest epoch; null if no worker claims to own the shard.
  [[nodiscard]] Claim const* owner(ShardKey const& key) const {
    auto const found = claims.find(key);
    Claim const* best = nullptr;
    if (found != claims.end())
      for (auto const& claim : found->second)
        if (claim.status.role == "owner" && (best == nullptr || claim.status.epoch > best->status.epoch)) best = &claim;
    return best;
  }
};

PlacementRecovery::PlacementRecovery(PlacementTools const& tools, Parts parts)
    : tools_(tools), parts_(parts), tasks_(tools.executor) {}

asio::awaitable<void> PlacementRecovery::stop() {
  tasks_.cancel();
  co_await tasks_.join();
}

void PlacementRecovery::begin() {
  parts_.queue.hold();
  tasks_.spawn("recovery of placements", recover());
}

asio::awaitable<void> PlacementRecovery::recover() {
  auto const survey = std::make_shared<Survey>(tools_.executor);
  for (auto const& [id, worker] : tools_.cluster.membership().all()) {
    if (!worker.ready) continue;
    ++survey->pending;
    tasks_.spawn("what " + id + " has", ask_what_it_has(survey, as_member(worker)));
  }
  while (survey->pending > 0) co_await survey->changed.wait_until(TimePoint::max());
  dispose(*survey);
  parts_.queue.release();
  auto const present = parts_.records.all();
  for (auto const& [name, record] : present) {
    auto const before = record->clients_epoch;
    parts_.records.update_clients(*record);
    if (record->clients_epoch != before) parts_.records.keep(*record);
    if (!record->is_established) {
      // Shards that exist already have the same epoch, and are not made again.
      if (record->is_resumed) parts_.lifecycle.begin(record);
      continue;
    }
    for (std::uint32_t i = 0; i < record->shards.size(); ++i) {
      compare(*record, i, *survey);
      parts_.queue.look_again({name, i});
    }
  }
}

asio::awaitable<void> PlacementRecovery::ask_what_it_has(std::shared_ptr<Survey> survey, api::Member worker) {
  auto const deadline = Clock::now() + tools_.patience.recovery;
  std::string cursor;
  for (;;) {
    auto const said = co_await tools_.workers.list_shards(worker.url, cursor, deadline);
    if (said.has_error() || said.value().has_error()) {
      auto const is_gone = said.has_error() && said.error().code == http::HttpErrc::connect_failed;
      if (is_gone) tools_.cluster.suspect(worker.worker, worker.incarnation);
      if (is_gone || Clock::now() + tools_.patience.repetition >= deadline) break;
      co_await http::pause(tools_.patience.repetition);
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
void PlacementRecovery::compare(ParameterRecord& record, std::uint32_t number, Survey const& survey) {
  auto const& name = record.parameter.name;
  auto& shard = record.shards[number];
  auto const* owner = survey.owner({name, number});
  auto const is_same = owner != nullptr && is_incarnation(shard.owner, owner->worker.worker, owner->worker.incarnation);
  if (owner == nullptr || !shard.owner || (!is_same && owner->status.epoch < shard.epoch)) {
    shard.clients_epoch = ShardPlacement::never_told;  // owner and backup are told their roles again
    return;
  }
  if (!is_same) {
    tools_.log.info("parameter {} shard={} epoch={} was taken over by {}", name, number, owner->status.epoch,
                    owner->worker.worker);
    parts_.records.set_backup(record, number, std::nullopt);
    parts_.records.set_owner(record, number, owner->worker);
  }
  if (shard.backup) shard.is_backup_complete = is_listed(owner->status.backups_complete, shard.backup->worker);
  if (owner->status.epoch != shard.epoch) shard.clients_epoch = ShardPlacement::never_told;
  // After a restart a worker whose lease had ended reports itself as unconfirmed. An heir that claims to own the shard
  // is confirmed.
  shard.is_unconfirmed |= owner->status.unconfirmed;
  if (is_same && shard.former && owner->status.epoch == shard.epoch && !owner->status.unconfirmed)
    parts_.drops.drop(name, number, shard.confirm());
  parts_.records.keep(record, number);
}

// Drops copies that are not needed any more: of parameters that were deleted while the worker was not reachable, and of
// shards that have another owner since.
void PlacementRecovery::dispose(Survey const& survey) {
  auto const& membership = tools_.cluster.membership();
  for (auto const& [key, claims] : survey.claims) {
    auto const record = parts_.records.with(key);
    if (record == nullptr && !parts_.records.epochs().knows(key.first)) continue;  // of another coordinator
    for (auto const& claim : claims) {
      auto const holds = [&](std::optional<api::Member> const& member) {
        return member && member->worker == claim.worker.worker;
      };
      if (record != nullptr) {
        auto& shard = record->shards[key.second];
        auto const is_newer = claim.status.epoch >= shard.epoch && claim.status.role == "owner";
        if (holds(shard.owner) || holds(shard.backup) || holds(shard.incoming) || holds(shard.former) || is_newer)
          continue;
        if (shard.is_unconfirmed || !shard.has_owner(membership)) {
          shard.superseded.push_back({claim.worker, claim.status.epoch});
          continue;
        }
      }
      parts_.drops.drop(key.first, key.second, {{claim.worker, claim.status.epoch}});
    }
  }
}

void PlacementRecovery::tidy(std::string const& worker) {
  tasks_.spawn("what " + worker + " has", tidy_when_recovered(worker));
}

asio::awaitable<void> PlacementRecovery::tidy_when_recovered(std::string worker) {
  while (parts_.queue.is_held()) co_await http::pause(tools_.patience.repetition);
  // Without any parameter so far, joining workers need not be asked.
  if (!parts_.records.epochs().knows_any()) co_return;
  auto const* now = tools_.cluster.membership().find(worker);
  if (now == nullptr || !now->ready) co_return;
  auto const survey = std::make_shared<Survey>(tools_.executor);
  survey->pending = 1;
  co_await ask_what_it_has(survey, as_member(*now));
  dispose(*survey);
}

}  // namespace chorus::coordinator
