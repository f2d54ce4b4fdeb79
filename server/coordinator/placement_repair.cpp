// How the directory keeps every shard where it should be, while it is used.
#include <algorithm>
#include <boost/asio/use_awaitable.hpp>
#include <charconv>
#include <utility>

#include "http/errc.hpp"
#include "server/coordinator/parameter_directory.hpp"

namespace chorus::coordinator {
namespace {

namespace asio = boost::asio;
using http::Problem;
using http::ProblemCode;
using Clock = std::chrono::steady_clock;

constexpr std::uint32_t highest_epoch_believed = 1U << 31;  // that a worker claims to have seen

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

void ParameterDirectory::worker_lost(std::string const& worker, std::string const& incarnation) {
  auto const found = shards_on_.find(worker);
  if (found == shards_on_.end()) return;
  tools_.log.warn("worker {} incarnation={} had {} shards of parameters", worker, incarnation, found->second.size());
  auto const keys = found->second;
  for (auto const& key : keys) look_again(key);
}

void ParameterDirectory::worker_joined(std::string const& worker) {
  auto const found = shards_on_.find(worker);
  if (found == shards_on_.end()) return;
  auto const keys = found->second;
  for (auto const& key : keys)
    if (records_.at(key.first)->parameter.durability == "log") look_again(key);
}

std::optional<api::Member> ParameterDirectory::returned_owner(Record const& record, Shard const& shard) const {
  if (record.parameter.durability != "log" || !shard.owner) return std::nullopt;
  auto const* worker = tools_.cluster.membership().find(shard.owner->worker);
  if (worker == nullptr || !worker->ready) return std::nullopt;
  auto incarnation = api::to_hex(worker->incarnation);
  if (incarnation == shard.owner->incarnation || incarnation == shard.refused_by) return std::nullopt;
  return api::Member{shard.owner->rank, worker->id, std::move(incarnation), worker->url, worker->locality, {}};
}

// Its log has what nobody else has.
bool ParameterDirectory::waits_for_owner(Record const& record, Shard const& shard) const {
  return record.parameter.durability == "log" && shard.owner && !is_ready(*shard.owner) &&
         !(shard.backup && is_ready(*shard.backup)) && !returned_owner(record, shard);
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
    shard.clients_epoch = record->clients_epoch;
    keep(*record, number);
    tools_.log.info("parameter {} shard={} epoch={} owner={} recovered", name, number, epoch, owner.worker);
  } else if (problem->code != ProblemCode::worker_unreachable && problem->code != ProblemCode::epoch_fenced &&
             problem->code != ProblemCode::unavailable) {
    // Somebody has to look at its disk. Started again, it is asked again.
    shard.refused_by = owner.incarnation;
    shard.why_refused = std::string(http::kind(problem->code).name) + ": " + problem->detail;
    tools_.log.error("parameter {} shard={} is not recovered: {}: {}", name, number, http::kind(problem->code).name,
                     problem->detail);
  }
  co_return problem;
}

bool ParameterDirectory::has_owner(Shard const& shard) const {
  return shard.owner && is_ready(*shard.owner) && shard.owner->incarnation != shard.lost_by;
}

// Said by the owner itself, of a shard that it was told to own. Where nobody else has it, but its log may, it is asked
// again until it is started again and reads that.
void ParameterDirectory::heed_loss(Record& record, std::uint32_t number, Problem const& problem) {
  auto& shard = record.shards[number];
  if (problem.code != ProblemCode::parameter_lost || !shard.owner) return;
  if (shard.backup || record.parameter.durability != "log") shard.lost_by = shard.owner->incarnation;
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
  if (key.second >= found->second->shards.size()) return;  // of one that had this name before
  auto const& shard = found->second->shards[key.second];
  if (waits_for_owner(*found->second, shard)) return;
  // Without its owner a shard answers nobody, and with a dead backup its owner acknowledges nothing.
  auto const is_urgent = (shard.owner && !has_owner(shard)) || (shard.backup && !is_ready(*shard.backup));
  auto& queue = is_urgent ? urgent_ : later_;
  queue.push_back(key);
  begin_work(is_urgent);
}

void ParameterDirectory::begin_work(bool urgent) {
  auto& working = urgent ? working_urgently_ : working_later_;
  // Copies wait until every shard has somebody who answers.
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

// An owner is followed by its backup, if that has everything; a backup that is lost is waited for no longer.
asio::awaitable<void> ParameterDirectory::settle_losses(RecordPtr record, std::uint32_t number) {
  auto& shard = record->shards[number];
  auto const& name = record->parameter.name;
  auto const give_up = [&](std::string const& why) {
    set(record, number, true, std::nullopt);
    set(record, number, false, std::nullopt);
    keep(*record, number);
    tools_.log.error("parameter {} shard={} is lost: {}", name, number, why);
  };
  while (!record->is_deleted && shard.owner) {
    auto problem = std::optional<Problem>();
    if (has_owner(shard)) {
      if (!shard.backup || is_ready(*shard.backup)) co_return;
      set(record, number, false, std::nullopt);
      draw_epoch(*record, number);
      problem = co_await tell(record, number, *shard.owner, true, false);
      if (!problem) co_return;
      heed_loss(*record, number, *problem);
    } else if (waits_for_owner(*record, shard)) {
      tools_.log.warn("parameter {} shard={} waits for worker {}, which has its log", name, number,
                      shard.owner->worker);
      co_return;
    } else if (auto const back = returned_owner(*record, shard); back && !(shard.backup && is_ready(*shard.backup))) {
      problem = co_await recover_owner(record, number, *back);
    } else if (!shard.backup || !is_ready(*shard.backup)) {
      co_return give_up("nobody else has it");
    } else {
      problem = co_await promote(record, number);
      if (problem && problem->code == ProblemCode::parameter_lost) co_return give_up(problem->detail);
    }
    if (!problem) continue;
    tools_.log.warn("parameter {} shard={}: {}", name, number, problem->detail);
    co_await pause(patience_.repetition);
  }
}

// The backup becomes the owner, and has no backup.
asio::awaitable<std::optional<Problem>> ParameterDirectory::promote(RecordPtr record, std::uint32_t number) {
  auto& shard = record->shards[number];
  auto const heir = *shard.backup;
  auto const before = shard.owner;
  draw_epoch(*record, number);
  auto const epoch = shard.epoch;
  auto problem = co_await tell(record, number, heir, true, false);
  if (problem || record->is_deleted || shard.epoch != epoch) co_return problem;
  set(record, number, false, std::nullopt);
  set(record, number, true, heir);
  keep(*record, number);
  tools_.log.info("parameter {} shard={} epoch={} owner={} before={}", record->parameter.name, number, shard.epoch,
                  heir.worker, before ? before->worker : "-");
  co_return std::nullopt;
}

// As many copies as asked for, on members of the group, and an owner that knows whose clocks count.
asio::awaitable<void> ParameterDirectory::restore_replicas(RecordPtr record, std::uint32_t number) {
  auto& shard = record->shards[number];
  auto const& name = record->parameter.name;
  std::vector<api::Member> unfit;  // for a backup, as they say
  while (!record->is_deleted && !is_stopping_ && shard.owner) {
    if (!has_owner(shard)) co_return look_again({name, number});
    auto const members = ready_members(record->parameter.group);
    auto const stays = members.empty() || is_among(members, *shard.owner);
    auto const backup_stays =
        shard.backup && is_ready(*shard.backup) && (members.empty() || is_among(members, *shard.backup));
    if (!stays && backup_stays && shard.is_backup_complete) {
      auto const before = *shard.owner;
      if (auto const problem = co_await promote(record, number))
        co_await pause(patience_.repetition);
      else
        tasks_.spawn("drop a shard of " + name, drop(before, name, number, shard.epoch));
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
      shard.clients_epoch = problem ? UINT32_MAX : record->clients_epoch;  // told again below, if it has not heard
      keep(*record, number);
      tasks_.spawn("drop a shard of " + name, drop(before, name, number, epoch));
      continue;
    }
    if (shard.clients_epoch != record->clients_epoch) {
      draw_epoch(*record, number);
      auto const told = record->clients_epoch;
      // The owner first: it asks the backup until that has heard of the epoch too.
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

// Made at the backup first, then known to the owner, which fills it while it goes on.
asio::awaitable<ParameterDirectory::Added> ParameterDirectory::add_backup(RecordPtr record, std::uint32_t number,
                                                                          api::Member backup) {
  auto& shard = record->shards[number];
  auto const before = shard.backup;
  auto const was_complete = shard.is_backup_complete;
  set(record, number, false, backup);
  draw_epoch(*record, number);
  auto problem = co_await tell(record, number, backup, false, false);
  auto const& name = record->parameter.name;
  if (problem && problem->code == ProblemCode::unsupported) {
    // It has no GPU for it. Nobody else has heard of anything.
    tools_.log.warn("parameter {} shard={} has no backup there: {}", name, number, problem->detail);
    set(record, number, false, before && before->worker != backup.worker ? before : std::nullopt);
    shard.is_backup_complete = shard.backup && was_complete;
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

asio::awaitable<bool> ParameterDirectory::until_complete(RecordPtr record, std::uint32_t number, api::Member backup) {
  constexpr std::chrono::milliseconds first_pause{5}, longest_pause{250};
  auto const deadline = Clock::now() + patience_.settling;
  auto& shard = record->shards[number];
  for (auto between = first_pause; Clock::now() < deadline; between = std::min(between * 2, longest_pause)) {
    if (record->is_deleted || !shard.owner || !is_ready(*shard.owner) || !is_ready(backup)) co_return false;
    auto const owner = *shard.owner;
    auto const said = co_await tools_.workers.look_at_shard(owner.url, record->parameter.name, number,
                                                            Clock::now() + patience_.assignment);
    if (said.has_error()) {
      tools_.cluster.suspect(owner.worker, owner.incarnation);
    } else if (said.value().has_value()) {
      auto const& complete = said.value().value().backups_complete;
      if (std::ranges::find(complete, backup.worker) != complete.end()) co_return true;
    }
    co_await pause(between);
  }
  co_return false;
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
  if (fresh) assignment.checkpoint = record->checkpoint;
  for (auto const& follower : {shard.backup, shard.incoming})
    if (as_owner && follower && follower->worker != member.worker)
      assignment.backups.push_back({follower->worker, follower->incarnation, follower->url});
  // Who hears of an epoch must not outlive the memory of it.
  if (auto undurable = co_await tools_.journal.flush()) co_return undurable;
  // A worker writes the initial values of all that it is given before it answers: 64 MiB in a second at least.
  auto const filling =
      std::chrono::milliseconds(fresh && !record->parameter.lazy_rows ? record->parameter.bytes >> 16 : 0);
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
  // Workers that outlived another coordinator have seen higher numbers of this name: go on above them.
  if (problem.code == ProblemCode::epoch_fenced)
    for (auto const& error : problem.errors)
      if (error.pointer == "/epoch") heed_epoch(record->parameter.name, error.detail);
  problem.detail = title + problem.detail;
  co_return problem;
}

}  // namespace chorus::coordinator
