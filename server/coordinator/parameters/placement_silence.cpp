// Shards whose workers are silent, have come back, or have ended. A silent worker may come back with its data.
#include <algorithm>
#include <boost/asio/use_awaitable.hpp>

#include "http/api/cluster/membership.hpp"
#include "server/coordinator/parameters/parameter_directory.hpp"

namespace chorus::coordinator {
namespace {

namespace asio = boost::asio;
using http::Problem;
using http::ProblemCode;
using Clock = std::chrono::steady_clock;

std::string shown(api::Member const& member) {
  return "worker '" + member.worker + "' (incarnation " + member.incarnation + ")";
}

}  // namespace

// With a log nothing is lost: the owner's log has the data.
bool ParameterDirectory::has_lost_owner(Record const& record, Shard const& shard) const {
  return shard.owner && record.parameter.durability != "log" &&
         (shard.owner_has_ended || shard.owner->incarnation == shard.lost_by);
}

bool ParameterDirectory::has_heir(Shard const& shard) const {
  return shard.backup && is_ready(*shard.backup) && (shard.is_backup_complete || !shard.is_backup_unfit);
}

// True if nothing can be done before a worker comes.
bool ParameterDirectory::waits(Record const& record, Shard const& shard) const {
  return shard.owner && !has_owner(shard) && !has_heir(shard) && !returned_owner(record, shard) &&
         !(shard.former && has_lost_owner(record, shard));
}

// True if an owner that is back could not take its shard from its log, and is asked again.
bool ParameterDirectory::has_refused(Record const& record, Shard const& shard) const {
  return !shard.why_refused.empty() && returned_owner(record, shard) && !has_owner(shard) && !has_heir(shard);
}

bool ParameterDirectory::is_lost(Record const& record, Shard const& shard) const {
  if (!shard.owner) return true;
  auto const may_have_it = shard.backup && !shard.backup_has_ended && !shard.is_backup_unfit;
  return has_lost_owner(record, shard) && !may_have_it && !shard.former;
}

char const* ParameterDirectory::state_of(Record const& record) const {
  auto waiting = false, degraded = false;
  for (auto const& shard : record.shards) {
    if (is_lost(record, shard)) return "lost";
    waiting |= waits(record, shard) || has_refused(record, shard);
    degraded |= shard.is_unconfirmed || !has_owner(shard);
    degraded |= record.parameter.replicas > 1 && !(shard.backup && shard.is_backup_complete);
  }
  return waiting ? "unavailable" : degraded ? "degraded" : "ready";
}

// Only for the latest incarnation of the owner: a new incarnation may be able to read the log.
bool ParameterDirectory::refuses_its_log(Shard const& shard) const {
  if (shard.refused_by.empty()) return false;
  auto const* const now = tools_.cluster.membership().find(shard.owner->worker);
  return now == nullptr || api::to_hex(now->incarnation) == shard.refused_by;
}

std::string ParameterDirectory::whom_waits_for(Record const& record) const {
  std::string waiting;
  for (std::size_t i = 0; i < record.shards.size(); ++i) {
    auto const& shard = record.shards[i];
    auto const title = "shard " + std::to_string(i);
    if (is_lost(record, shard))
      return title +
             " is lost: " + (shard.owner ? shown(*shard.owner) + " had it, and does not any more" : "it was given up");
    bool const has_refused_now = has_refused(record, shard);
    if (!waiting.empty() || !(waits(record, shard) || has_refused_now)) continue;
    if (has_refused_now || refuses_its_log(shard)) {
      waiting = title + ": " + shard.why_refused;
      continue;
    }
    waiting = title + " waits for " + shown(*shard.owner) + ", which is silent";
    if (record.parameter.durability == "log") waiting += ", or for its next incarnation, which reads its log";
    if (shard.backup && !shard.is_backup_unfit && !shard.backup_has_ended)
      waiting += ", or for its backup, " + shown(*shard.backup);
  }
  return waiting;
}

void ParameterDirectory::worker_lost(std::string const& worker, std::string const& incarnation) {
  auto const found = shards_on_.find(worker);
  if (found == shards_on_.end()) return;
  tools_.log.warn("worker {} incarnation={} had {} shards of parameters", worker, incarnation, found->second.size());
  auto const keys = found->second;
  for (auto const& key : keys) look_again(key);
}

// Marks owner and backup as ended if they are other incarnations than the present one, because their data are gone.
void ParameterDirectory::note_end(Shard& shard, std::string const& worker, std::string const& present) const {
  auto const has_ended = [&](std::optional<api::Member> const& member, bool before) {
    return member && member->worker == worker ? member->incarnation != present : before;
  };
  shard.owner_has_ended = has_ended(shard.owner, shard.owner_has_ended);
  shard.backup_has_ended = has_ended(shard.backup, shard.backup_has_ended);
}

void ParameterDirectory::worker_ended(std::string const& worker, std::string const& incarnation) {
  auto const found = shards_on_.find(worker);
  if (found == shards_on_.end()) return;
  auto const keys = found->second;
  for (auto const& key : keys) {
    auto const& record = records_.at(key.first);
    auto& shard = record->shards[key.second];
    auto const is_it = [&](std::optional<api::Member> const& member) {
      return member && member->worker == worker && member->incarnation == incarnation;
    };
    if (is_it(shard.owner)) shard.owner_has_ended = true;
    if (is_it(shard.backup)) shard.backup_has_ended = true;
    keep(*record, key.second);
    if (is_it(shard.owner) && is_lost(*record, shard))
      tools_.log.error("parameter {}: {}", key.first, whom_waits_for(*record));
    look_again(key);
  }
}

void ParameterDirectory::worker_joined(std::string const& worker) {
  auto const* now = tools_.cluster.membership().find(worker);
  if (now == nullptr) return;
  auto const incarnation = api::to_hex(now->incarnation);
  auto const found = shards_on_.find(worker);
  auto const keys = found == shards_on_.end() ? std::set<Key>() : found->second;
  for (auto const& key : keys) {
    auto const& record = records_.at(key.first);
    auto& shard = record->shards[key.second];
    note_end(shard, worker, incarnation);
    for (auto* const member : {&shard.owner, &shard.backup, &shard.incoming})
      if (*member && (*member)->worker == worker && (*member)->incarnation == incarnation) {
        (*member)->url = now->url;
        (*member)->locality = now->locality;
      }
    // The owner still has the shard, and takes no pushes before it is confirmed as the owner.
    if (shard.owner && is_ready(*shard.owner) && shard.owner->worker == worker) shard.is_unconfirmed = true;
    keep(*record, key.second);
    look_again(key);
  }
  look_for_backups(worker);
  tasks_.spawn("what " + worker + " has", tidy(worker));
}

// A member that has come back may take backups that no other member could.
void ParameterDirectory::look_for_backups(std::string const& worker) {
  for (auto const& [group, names] : of_group_) {
    auto const members = ready_members(group);
    if (std::ranges::find(members, worker, &api::Member::worker) == members.end()) continue;
    for (auto const& name : names) {
      auto const& record = *records_.at(name);
      for (std::uint32_t i = 0; record.parameter.replicas > 1 && i < record.shards.size(); ++i)
        if (!record.shards[i].backup || !record.shards[i].is_backup_complete) look_again({name, i});
    }
  }
}

std::optional<api::Member> ParameterDirectory::returned_owner(Record const& record, Shard const& shard) const {
  if (record.parameter.durability != "log" || !shard.owner) return std::nullopt;
  auto const* worker = tools_.cluster.membership().find(shard.owner->worker);
  if (worker == nullptr || !worker->ready) return std::nullopt;
  auto incarnation = api::to_hex(worker->incarnation);
  if (incarnation == shard.owner->incarnation || incarnation == shard.refused_by) return std::nullopt;
  return api::Member{shard.owner->rank, worker->id, std::move(incarnation), worker->url, worker->locality, {}};
}

asio::awaitable<std::optional<Problem>> ParameterDirectory::recover_owner(RecordPtr record, std::uint32_t number,
                                                                          api::Member owner) {
  auto& shard = record->shards[number];
  auto const& name = record->parameter.name;
  if (shard.backup) set(record, number, false, std::nullopt);
  draw_epoch(*record, number);
  auto const epoch = shard.epoch;
  auto problem = co_await tell(record, number, owner, true, false, false, true);
  if (record->is_deleted || shard.epoch != epoch) co_return problem;
  if (!problem) {
    set(record, number, true, owner);
    shard.is_unconfirmed = false;
    if (auto former = std::exchange(shard.former, std::nullopt)) shard.superseded.emplace_back(*former, epoch);
    drop_superseded(*record, number);
    shard.clients_epoch = record->clients_epoch;
    keep(*record, number);
    tools_.log.info("parameter {} shard={} epoch={} owner={} recovered", name, number, epoch, owner.worker);
  } else if (problem->code != ProblemCode::worker_unreachable && problem->code != ProblemCode::epoch_fenced) {
    // What lacks may come: memory, a disk that answers. Otherwise a person has to look at the disk, and the next
    // incarnation of the worker is asked again.
    if (problem->code != ProblemCode::unavailable) shard.refused_by = owner.incarnation;
    auto why = std::string(http::kind(problem->code).name) + ": " + problem->detail;
    if (shard.why_refused != why) tools_.log.error("parameter {} shard={} is not recovered: {}", name, number, why);
    shard.why_refused = std::move(why);
  }
  co_return problem;
}

// The heir does not have the shard, or has ended before it confirmed that it does.
void ParameterDirectory::return_to_former(RecordPtr const& record, std::uint32_t number) {
  auto& shard = record->shards[number];
  auto former = std::move(*shard.former);
  shard.former.reset();
  shard.superseded.emplace_back(*shard.owner, shard.epoch);
  tools_.log.warn("parameter {} shard={} goes back from worker {} to worker {}", record->parameter.name, number,
                  shard.owner->worker, former.worker);
  set(record, number, true, std::move(former));
  shard.is_unconfirmed = true;
  if (auto const* now = tools_.cluster.membership().find(shard.owner->worker))
    note_end(shard, now->id, api::to_hex(now->incarnation));
  keep(*record, number);
}

TimePoint ParameterDirectory::end_of_lease(api::Member const& member) const {
  auto const* const worker = tools_.cluster.membership().find(member.worker);
  bool const is_silent = worker != nullptr && !worker->ready && api::to_hex(worker->incarnation) == member.incarnation;
  return is_silent ? worker->heard + worker->lease : TimePoint::min();
}

// Waits until all leases of the workers that had the parameter have passed.
asio::awaitable<void> ParameterDirectory::until_leases_end(RecordPtr record) {
  auto end = TimePoint::min();
  for (auto const& shard : record->shards)
    for (auto const* member : {&shard.owner, &shard.backup, &shard.former})
      if (*member) end = std::max(end, end_of_lease(**member));
  co_await pause_until(end);
}

asio::awaitable<http::Checked<api::Parameter>> ParameterDirectory::give_up(std::string name) {
  if (auto const present = find(name); present.has_error()) co_return present.error();
  auto const record = records_.find(name)->second;
  for (std::uint32_t number = 0; number < record->shards.size(); ++number) {
    auto& shard = record->shards[number];
    if (!waits(*record, shard)) continue;
    tools_.log.error("parameter {} shard={} is given up: it waited for {}", name, number, shown(*shard.owner));
    for (auto const& holder : {shard.owner, shard.backup, std::exchange(shard.former, std::nullopt)})
      if (holder) shard.superseded.emplace_back(*holder, shard.epoch);
    shard.is_unconfirmed = false;
    set(record, number, true, std::nullopt);
    set(record, number, false, std::nullopt);
    keep(*record, number);
  }
  if (auto undurable = co_await tools_.journal.flush()) co_return std::move(*undurable);
  co_return show(*record);
}

}  // namespace chorus::coordinator
