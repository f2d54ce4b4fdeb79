// Keeps every shard at its place while the directory is in use.
#include <algorithm>
#include <boost/asio/use_awaitable.hpp>
#include <charconv>
#include <utility>

#include "http/wire/errc.hpp"
#include "server/coordinator/parameters/parameter_directory.hpp"

namespace chorus::coordinator {
namespace {

namespace asio = boost::asio;
using http::Problem;
using http::ProblemCode;
using Clock = std::chrono::steady_clock;

constexpr std::uint32_t highest_epoch_believed = 1U << 31;  // limit for epochs that a worker claims to have seen

bool is_among(std::vector<api::Member> const& members, api::Member const& member) {
  return std::ranges::any_of(members, [&](auto const& other) {
    return other.worker == member.worker && other.incarnation == member.incarnation;
  });
}

std::vector<api::Member> without(std::vector<api::Member> members, std::vector<api::Member> const& these) {
  std::erase_if(members, [&](auto const& member) { return is_among(these, member); });
  return members;
}

}  // namespace

void ParameterDirectory::heed_epoch(std::string const& name, std::string const& seen) {
  std::uint32_t epoch = 0;
  auto const* const end = seen.data() + seen.size();
  auto const [rest, failure] = std::from_chars(seen.data(), end, epoch);
  if (failure == std::errc() && rest == end && epoch < highest_epoch_believed) epochs_.seen(name, epoch);
}

std::optional<std::uint64_t> ParameterDirectory::term_of(api::Member const& member) const {
  auto const* worker = tools_.cluster.membership().find(member.worker);
  return worker == nullptr ? std::nullopt : worker->term;
}

bool ParameterDirectory::has_owner(Shard const& shard) const {
  return shard.owner && is_ready(*shard.owner) && shard.owner->incarnation != shard.lost_by;
}

// Handles the owner's report that it does not have its shard. If no other worker has the shard but the owner's log may,
// the shard waits for the owner's next incarnation, which reads the log.
void ParameterDirectory::heed_loss(Record& record, std::uint32_t number, Problem const& problem) {
  auto& shard = record.shards[number];
  if (problem.code == ProblemCode::parameter_lost && shard.owner) shard.lost_by = shard.owner->incarnation;
}

void ParameterDirectory::group_changed(std::string const& group) {
  auto const found = of_group_.find(group);
  if (found == of_group_.end()) return;
  for (auto const& name : found->second) {
    auto const& record = records_.at(name);
    update_clients(*record);
    keep(*record);
    for (std::uint32_t i = 0; i < record->shards.size(); ++i) {
      record->shards[i].is_unbalanced = true;
      look_again({name, i});
    }
  }
}

void ParameterDirectory::look_again(Key const& key) {
  auto const found = records_.find(key.first);
  if (found == records_.end() || is_stopping_ || is_recovering_) return;
  if (key.second >= found->second->shards.size()) return;  // a key of an earlier parameter of this name
  auto const& shard = found->second->shards[key.second];
  // A shard without an owner serves no client, and with a dead backup its owner acknowledges nothing.
  auto const is_urgent =
      (shard.owner && (shard.is_unconfirmed || !has_owner(shard))) || (shard.backup && !is_ready(*shard.backup));
  if (is_urgent && waits(*found->second, shard)) return;
  auto& queue = is_urgent ? urgent_ : later_;
  queue.push_back(key);
  begin_work(is_urgent);
}

void ParameterDirectory::begin_work(bool urgent) {
  auto& working = urgent ? working_urgently_ : working_later_;
  // Copies wait until every shard has an owner that serves.
  if (!urgent && working_urgently_ > 0) return;
  if (working >= (urgent ? patience_.most_takeovers : patience_.most_moves)) return;
  ++working;
  tasks_.spawn("placements", work_off(urgent));
}

asio::awaitable<void> ParameterDirectory::work_off(bool urgent) {
  auto& queue = urgent ? urgent_ : later_;
  while (!queue.empty()) {
    auto const [name, shard] = queue.front();
    queue.pop_front();
    auto const found = records_.find(name);
    if (found == records_.end() || !found->second->is_established || shard >= found->second->shards.size()) continue;
    auto const record = found->second;
    auto& busy = urgent ? record->shards[shard].is_urgently_busy : record->shards[shard].is_busy;
    if (busy) continue;
    busy = true;
    if (urgent)
      co_await settle_losses(record, shard);
    else
      co_await restore_replicas(record, shard);
    busy = false;
    if (urgent) look_again({name, shard});
  }
  --(urgent ? working_urgently_ : working_later_);
  if (!urgent || working_urgently_ > 0 || later_.empty()) co_return;
  for (std::size_t i = 0; i < patience_.most_moves; ++i) begin_work(false);
}

// Lets a complete backup follow a lost owner, and removes a lost backup. A shard without either waits.
asio::awaitable<void> ParameterDirectory::settle_losses(RecordPtr record, std::uint32_t number) {
  auto& shard = record->shards[number];
  auto const& name = record->parameter.name;
  while (!record->is_deleted && shard.owner) {
    auto problem = std::optional<Problem>();
    if (has_owner(shard)) {
      auto const is_alone = shard.backup && !is_ready(*shard.backup);
      if (!is_alone && !shard.is_unconfirmed) co_return;
      if (is_alone) set(record, number, false, std::nullopt);
      problem = co_await confirm_owner(record, number);
    } else if (shard.former && has_lost_owner(*record, shard)) {
      return_to_former(record, number);
    } else if (waits(*record, shard)) {
      auto const lost = is_lost(*record, shard);
      tools_.log.log(lost ? spdlog::level::err : spdlog::level::warn, "parameter {} shard={} is {}: {}", name, number,
                     lost ? "lost" : "unavailable", whom_waits_for(*record));
      co_return;
    } else if (auto const back = returned_owner(*record, shard); back && !has_heir(shard)) {
      problem = co_await recover_owner(record, number, *back);
    } else {
      problem = co_await promote(record, number);
    }
    if (!problem) continue;
    tools_.log.warn("parameter {} shard={}: {}", name, number, problem->detail);
    co_await pause(patience_.repetition);
  }
}

// Makes the backup the owner; the shard then has no backup.
asio::awaitable<std::optional<Problem>> ParameterDirectory::promote(RecordPtr record, std::uint32_t number) {
  auto& shard = record->shards[number];
  auto const heir = *shard.backup;
  if (!shard.is_backup_complete) {
    // The backup may be complete without the coordinator's knowledge. Data from before its last assignment do not
    // count.
    auto const said = co_await tools_.workers.look_at_shard(heir.url, record->parameter.name, number,
                                                            Clock::now() + patience_.assignment);
    if (record->is_deleted || !shard.backup || shard.backup->incarnation != heir.incarnation) co_return std::nullopt;
    if (said.has_error()) {
      tools_.cluster.suspect(heir.worker, heir.incarnation);
      co_return Problem(ProblemCode::worker_unreachable, "worker '" + heir.worker + "': " + said.error().detail);
    }
    auto const& status = said.value();
    if (status.has_error() || !status.value().complete || status.value().epoch < shard.backup_epoch) {
      shard.is_backup_unfit = true;
      co_return Problem(ProblemCode::parameter_lost, "worker '" + heir.worker + "' does not have everything");
    }
  }
  auto const before = shard.owner;
  set(record, number, false, std::nullopt);
  hand_to(record, number, heir);
  auto problem = co_await confirm_owner(record, number);
  if (!problem)
    tools_.log.info("parameter {} shard={} epoch={} owner={} before={}", record->parameter.name, number, shard.epoch,
                    heir.worker, before ? before->worker : "-");
  co_return problem;
}

// Makes the heir the owner, in the journal before the heir hears of it. An heir whose answer is lost may have taken
// pushes, so no other worker owns the shard until the heir has denied it or ended.
void ParameterDirectory::hand_to(RecordPtr const& record, std::uint32_t number, api::Member heir) {
  auto& shard = record->shards[number];
  if (shard.former) shard.superseded.emplace_back(*shard.former, shard.epoch);
  shard.former = shard.owner;
  set(record, number, true, std::move(heir));
  shard.is_unconfirmed = true;
}

// Tells the owner its role under a new epoch, then tells the backup the epoch.
asio::awaitable<std::optional<Problem>> ParameterDirectory::confirm_owner(RecordPtr record, std::uint32_t number) {
  auto& shard = record->shards[number];
  auto const owner = *shard.owner;
  auto const told = record->clients_epoch;
  draw_epoch(*record, number);
  auto const epoch = shard.epoch;
  auto const term = term_of(owner);
  auto problem = co_await tell(record, number, owner, true, false, true);
  if (record->is_deleted || shard.epoch != epoch) co_return problem;
  if (problem) {
    heed_loss(*record, number, *problem);
    co_return problem;
  }
  if (term_of(owner) != term)
    co_return Problem(ProblemCode::unavailable, "worker '" + owner.worker + "' has a new lease since it was told");
  shard.is_unconfirmed = false;
  if (auto former = std::exchange(shard.former, std::nullopt)) shard.superseded.emplace_back(*former, epoch);
  drop_superseded(*record, number);
  if (shard.backup) problem = co_await tell(record, number, *shard.backup, false, false, true);
  if (shard.incoming && !problem) problem = co_await tell(record, number, *shard.incoming, false, false, true);
  if (shard.epoch == epoch) shard.clients_epoch = problem ? Shard::never_told : told;
  keep(*record, number);
  co_return problem;
}

// Restores the requested number of copies on members of the group, and tells the owner the current clients.
asio::awaitable<void> ParameterDirectory::restore_replicas(RecordPtr record, std::uint32_t number) {
  auto& shard = record->shards[number];
  auto const& name = record->parameter.name;
  std::vector<api::Member> unfit;  // refused a backup
  while (!record->is_deleted && !is_stopping_ && shard.owner) {
    if (shard.is_unconfirmed || !has_owner(shard)) co_return look_again({name, number});
    auto const members = ready_members(record->parameter.group);
    auto const stays = members.empty() || is_among(members, *shard.owner);
    auto const backup_stays =
        shard.backup && is_ready(*shard.backup) && (members.empty() || is_among(members, *shard.backup));
    if (!stays && backup_stays && shard.is_backup_complete) {
      if (co_await promote(record, number)) co_await pause(patience_.repetition);
      continue;
    }
    auto const wanted = record->parameter.replicas > 1 || !stays;
    if (wanted && !(backup_stays && shard.is_backup_complete)) {
      auto const fit = without(members, unfit);
      auto const* heir = backup_stays ? &*shard.backup : pick_backup(fit, *shard.owner, load_);
      if (heir != nullptr) {
        auto const chosen = *heir;
        auto const added = co_await add_backup(record, number, chosen);
        if (added == Added::refused) unfit.push_back(chosen);
        if (added == Added::not_yet) co_await pause(patience_.repetition);
        continue;
      }
    }
    if (shard.backup && (!wanted || !backup_stays)) {
      auto const before = *shard.backup;
      set(record, number, false, std::nullopt);
      draw_epoch(*record, number);
      auto const epoch = shard.epoch;
      auto const problem = co_await tell(record, number, *shard.owner, true, false);
      if (problem) heed_loss(*record, number, *problem);
      shard.clients_epoch = problem ? UINT32_MAX : record->clients_epoch;  // a failed owner is told again below
      keep(*record, number);
      tasks_.spawn("drop a shard of " + name, drop(before, name, number, epoch));
      continue;
    }
    if (shard.clients_epoch != record->clients_epoch) {
      draw_epoch(*record, number);
      auto const told = record->clients_epoch;
      // The owner first: it asks the backup until the backup has heard of the epoch, too.
      auto problem = co_await tell(record, number, *shard.owner, true, false, true);
      if (problem) heed_loss(*record, number, *problem);
      if (!problem && shard.backup) problem = co_await tell(record, number, *shard.backup, false, false, true);
      if (problem)
        co_await pause(patience_.repetition);
      else
        shard.clients_epoch = told;
      keep(*record, number);
      continue;
    }
    if (!unfit.empty() && !std::exchange(shard.is_looked_at_later, true)) {
      auto again = look_again_later(record, number);
      tasks_.spawn("somebody else for " + name, std::move(again));
    }
    if (!std::exchange(shard.is_unbalanced, false)) co_return;
    auto const* better = pick_better_owner(members, *shard.owner, shard.backup ? shard.backup->worker : "",
                                           load_of(*record, number), load_);
    if (better == nullptr) co_return;
    auto const chosen = *better;
    co_await move_owner(record, number, chosen);
  }
}

// Makes the backup first, then tells the owner, which fills it while it continues.
asio::awaitable<ParameterDirectory::Added> ParameterDirectory::add_backup(RecordPtr record, std::uint32_t number,
                                                                          api::Member backup) {
  auto& shard = record->shards[number];
  auto const before = shard.backup;
  auto const was_complete = shard.is_backup_complete;
  auto const epoch_before = shard.backup_epoch;
  set(record, number, false, backup);
  draw_epoch(*record, number);
  shard.backup_epoch = shard.epoch;
  keep(*record, number);
  auto problem = co_await tell(record, number, backup, false, false);
  auto const& name = record->parameter.name;
  if (problem && problem->code == ProblemCode::unsupported) {
    // The worker has no GPU for it. No other worker has heard of the change.
    tools_.log.warn("parameter {} shard={} has no backup there: {}", name, number, problem->detail);
    set(record, number, false, before && before->worker != backup.worker ? before : std::nullopt);
    shard.is_backup_complete = shard.backup && was_complete;
    shard.backup_epoch = epoch_before;
    keep(*record, number);
    co_return Added::refused;
  }
  if (!problem && shard.owner) {
    problem = co_await tell(record, number, *shard.owner, true, false);
    if (problem) heed_loss(*record, number, *problem);
  }
  if (before && before->worker != backup.worker)
    tasks_.spawn("drop a shard of " + name, drop(*before, name, number, shard.epoch));
  if (problem) {
    tools_.log.warn("parameter {} shard={} has no backup yet: {}", name, number, problem->detail);
    co_return Added::not_yet;
  }
  shard.clients_epoch = record->clients_epoch;
  auto const is_filled = co_await until_complete(record, number, backup);
  auto const complete = is_filled && shard.backup && shard.backup->worker == backup.worker;
  if (complete) {
    shard.is_backup_complete = true;
    keep(*record, number);
    tools_.log.info("parameter {} shard={} epoch={} owner={} backup={}", name, number, shard.epoch,
                    shard.owner ? shard.owner->worker : "-", backup.worker);
  }
  co_return complete ? Added::complete : Added::not_yet;
}

asio::awaitable<void> ParameterDirectory::look_again_later(RecordPtr record, std::uint32_t number) {
  co_await pause(patience_.second_thoughts);
  record->shards[number].is_looked_at_later = false;
  if (!record->is_deleted) look_again({record->parameter.name, number});
}

asio::awaitable<std::optional<Problem>> ParameterDirectory::tell(RecordPtr record, std::uint32_t number,
                                                                 api::Member member, bool as_owner, bool fresh,
                                                                 bool continues, bool recover) {
  auto const& shard = record->shards[number];
  api::ShardAssignment assignment;
  assignment.parameter = record->parameter;
  assignment.shard = number;
  assignment.begin = shard.range.begin;
  assignment.end = shard.range.end;
  assignment.epoch = shard.epoch;
  assignment.role = as_owner ? "owner" : "backup";
  assignment.worker = member.worker;
  assignment.incarnation = member.incarnation;
  assignment.fresh = fresh;
  assignment.continues = continues;
  assignment.recover = recover;
  assignment.term = term_of(member);
  if (fresh) assignment.checkpoint = record->checkpoint;
  for (auto const& follower : {shard.backup, shard.incoming})
    if (as_owner && follower && follower->worker != member.worker)
      assignment.backups.push_back({follower->worker, follower->incarnation, follower->url});
  // The epoch must be in the journal before a worker hears of it.
  if (auto undurable = co_await tools_.journal.flush()) co_return undurable;
  // Before its answer a worker writes the initial values, and up to three times as much of the optimizer's state, at 64
  // MiB per second or more.
  auto const filling =
      std::chrono::milliseconds(fresh && !record->parameter.lazy_rows ? record->parameter.bytes >> 14 : 0);
  auto const is_read = assignment.checkpoint || recover || record->parameter.durability == "log";
  auto const patience = (is_read ? patience_.loading : patience_.assignment) + filling;
  auto const said = co_await orders_.assign(member.url, std::move(assignment), Clock::now() + patience);
  auto const title = "worker '" + member.worker + "', shard " + std::to_string(number) + ": ";
  if (said.has_error()) {
    tools_.cluster.suspect(member.worker, member.incarnation);
    co_return Problem(ProblemCode::worker_unreachable, title + said.error().detail);
  }
  if (said.value().has_value()) co_return std::nullopt;
  auto problem = said.value().error();
  // Workers that outlived another coordinator have seen higher epochs of this name: continue above them.
  if (problem.code == ProblemCode::epoch_fenced)
    for (auto const& error : problem.errors)
      if (error.pointer == "/epoch") heed_epoch(record->parameter.name, error.detail);
  problem.detail = title + problem.detail;
  co_return problem;
}

}  // namespace chorus::coordinator
