#include "server/coordinator/placements/shard_repair.hpp"

#include "base/runtime/pause.hpp"

namespace chorus::coordinator {
namespace {

namespace asio = boost::asio;
using http::ProblemCode;
using Clock = std::chrono::steady_clock;

std::vector<api::Member> except(std::vector<api::Member> members, std::vector<api::Member> const& these) {
  std::erase_if(members, [&](auto const& member) { return is_among(these, member); });
  return members;
}

}  // namespace

// The attempts at a repair of one shard: a reason that stays is logged once, and the pauses grow.
class ShardRepair::Attempts {
 public:
  Attempts(ShardRepair& repair, ParameterRecordPtr record, std::uint32_t shard, bool is_urgent)
      : repair_(repair), record_(std::move(record)), shard_(shard), is_urgent_(is_urgent) {}

  // The last attempt has failed. Numbers, as in names of files, do not make another reason.
  void log(std::string_view what, http::Problem const& why) {
    auto const& owner = record_->shards[shard_].owner;
    auto reason = why.detail;
    std::erase_if(reason, [](char c) { return c >= '0' && c <= '9'; });
    reason += owner ? owner->worker : "";
    if (std::exchange(why_, reason) == reason) return;
    repair_.tools_.log.warn("parameter {} shard={}{}: {}", record_->parameter.name, shard_, what, why.detail);
  }
  asio::awaitable<void> pause() {
    constexpr int longest = 20;
    auto const shortest = repair_.tools_.patience.repetition;
    length_ = std::clamp(2 * length_, shortest, longest * shortest);
    co_await repair_.parts_.queue.pause(record_, shard_, is_urgent_, length_);
  }

 private:
  ShardRepair& repair_;
  ParameterRecordPtr const record_;
  std::uint32_t const shard_;
  bool const is_urgent_;
  std::string why_;
  std::chrono::milliseconds length_{};
};

asio::awaitable<void> ShardRepair::settle_losses(ParameterRecordPtr record, std::uint32_t number) {
  auto& shard = record->shards[number];
  auto const& name = record->parameter.name;
  auto const& membership = tools_.cluster.membership();
  Attempts attempts(*this, record, number, true);
  while (!record->is_deleted && shard.owner) {
    auto problem = std::optional<http::Problem>();
    if (shard.has_owner(membership)) {
      if (!shard.is_urgent(membership)) co_return;
      if (shard.backup && !is_ready(membership, *shard.backup))
        parts_.records.set_backup(*record, number, std::nullopt);
      problem = co_await parts_.owners.confirm(record, number);
    } else if (shard.former && shard.has_lost_owner()) {
      parts_.owners.return_to_former(record, number);
    } else if (shard.waits(membership)) {
      auto const lost = shard.is_lost();
      tools_.log.log(lost ? spdlog::level::err : spdlog::level::warn, "parameter {} shard={} is {}: {}", name, number,
                     lost ? "lost" : "unavailable", record->why(membership));
      co_return;
    } else if (auto const back = shard.returned_owner(membership); back && !shard.has_heir(membership)) {
      problem = co_await parts_.owners.recover(record, number, *back);
    } else {
      problem = co_await parts_.owners.promote(record, number);
    }
    if (!problem) continue;
    attempts.log("", *problem);
    co_await attempts.pause();
  }
}

asio::awaitable<void> ShardRepair::restore_replicas(ParameterRecordPtr record, std::uint32_t number) {
  auto& shard = record->shards[number];
  auto const& membership = tools_.cluster.membership();
  std::vector<api::Member> unfit;  // refused a backup
  Attempts attempts(*this, record, number, false);
  while (!record->is_deleted && shard.owner) {
    if (shard.is_unconfirmed || !shard.has_owner(membership))
      co_return parts_.queue.look_again({record->parameter.name, number});
    auto const members = parts_.candidates.of(record->parameter.group);
    auto const stays = members.empty() || is_among(members, *shard.owner);
    auto const backup_stays =
        shard.backup && is_ready(membership, *shard.backup) && (members.empty() || is_among(members, *shard.backup));
    if (!stays && backup_stays && shard.is_backup_complete) {
      if (co_await parts_.owners.promote(record, number)) co_await attempts.pause();
      continue;
    }
    auto const wanted = record->parameter.replicas > 1 || !stays;
    if (wanted && !(backup_stays && shard.is_backup_complete)) {
      auto const fit = except(members, unfit);
      auto const* heir = backup_stays ? &*shard.backup : pick_backup(fit, *shard.owner, parts_.records.load());
      if (heir != nullptr) {
        auto const chosen = *heir;
        auto const added = co_await add_backup(record, number, chosen, &attempts);
        if (added == Added::refused) unfit.push_back(chosen);
        if (added == Added::not_yet) co_await attempts.pause();
        continue;
      }
    }
    if (shard.backup && (!wanted || !backup_stays)) {
      co_await remove_backup(record, number);
      continue;
    }
    if (shard.clients_epoch != record->clients_epoch) {
      if (co_await parts_.owners.tell_clients(record, number)) co_await attempts.pause();
      continue;
    }
    if (!unfit.empty()) parts_.queue.look_again_later(record, number);
    if (!std::exchange(shard.is_unbalanced, false)) co_return;
    auto const* better = pick_better_owner(members, *shard.owner, shard.backup ? shard.backup->worker : "",
                                           record->load_of(number), parts_.records.load());
    if (better == nullptr) co_return;
    auto const chosen = *better;
    co_await move_owner(record, number, chosen);
  }
}

// Makes the backup first, then tells the owner.
asio::awaitable<ShardRepair::Added> ShardRepair::add_backup(ParameterRecordPtr record, std::uint32_t number,
                                                            api::Member backup, Attempts* attempts) {
  auto& shard = record->shards[number];
  auto const before = shard.backup;
  auto const was_complete = shard.is_backup_complete;
  auto const epoch_before = shard.backup_epoch;
  parts_.records.set_backup(*record, number, backup);
  auto const told = record->clients_epoch;
  parts_.records.draw_epoch(*record, number);
  auto const epoch = shard.backup_epoch = shard.epoch;
  parts_.records.keep(*record, number);
  auto problem = co_await parts_.roles.tell(record, number, backup, ShardRole::backup, ShardData::copied);
  auto const& name = record->parameter.name;
  if (problem && problem->code == ProblemCode::unsupported) {
    // The worker has no GPU for it. No other worker has heard of the change.
    tools_.log.warn("parameter {} shard={} has no backup there: {}", name, number, problem->detail);
    parts_.records.set_backup(*record, number, before && before->worker != backup.worker ? before : std::nullopt);
    shard.is_backup_complete = shard.backup && was_complete;
    shard.backup_epoch = epoch_before;
    parts_.records.keep(*record, number);
    co_return Added::refused;
  }
  if (!problem && shard.owner) {
    problem = co_await parts_.roles.tell(record, number, *shard.owner, ShardRole::owner, ShardData::copied);
    if (problem) shard.heed_loss(*problem);
  }
  if (before && before->worker != backup.worker) parts_.drops.drop(name, number, {{*before, shard.epoch}});
  if (problem) {
    attempts->log(" has no backup yet", *problem);
    co_return Added::not_yet;
  }
  if (shard.epoch == epoch) shard.clients_epoch = told;
  auto const is_filled = co_await until_complete(record, number, backup);
  if (!is_filled || !shard.backup || shard.backup->worker != backup.worker) co_return Added::not_yet;
  shard.is_backup_complete = true;
  parts_.records.keep(*record, number);
  tools_.log.info("parameter {} shard={} epoch={} owner={} backup={}", name, number, shard.epoch,
                  shard.owner ? shard.owner->worker : "-", backup.worker);
  co_return Added::complete;
}

asio::awaitable<void> ShardRepair::remove_backup(ParameterRecordPtr record, std::uint32_t number) {
  auto& shard = record->shards[number];
  auto const before = *shard.backup;
  parts_.records.set_backup(*record, number, std::nullopt);
  auto const told = record->clients_epoch;
  parts_.records.draw_epoch(*record, number);
  auto const epoch = shard.epoch;
  auto const problem = co_await parts_.roles.tell(record, number, *shard.owner, ShardRole::owner, ShardData::copied);
  if (problem) shard.heed_loss(*problem);
  // After a problem the owner is told again.
  if (problem)
    shard.clients_epoch = ShardPlacement::never_told;
  else if (shard.epoch == epoch)
    shard.clients_epoch = told;
  parts_.records.keep(*record, number);
  parts_.drops.drop(record->parameter.name, number, {{before, epoch}});
}

// The newcomer is filled while owner and backup continue. When it is complete it becomes the owner, and the complete
// backup follows it from there.
asio::awaitable<void> ShardRepair::move_owner(ParameterRecordPtr record, std::uint32_t number, api::Member to) {
  auto& shard = record->shards[number];
  auto const& name = record->parameter.name;
  parts_.records.set_incoming(*record, number, to);
  parts_.records.draw_epoch(*record, number);
  auto problem = co_await parts_.roles.tell(record, number, to, ShardRole::backup, ShardData::copied);
  if (!problem && shard.owner)
    problem = co_await parts_.roles.tell(record, number, *shard.owner, ShardRole::owner, ShardData::kept);
  if (!problem && shard.backup)
    problem = co_await parts_.roles.tell(record, number, *shard.backup, ShardRole::backup, ShardData::kept);
  auto is_moved = false;
  if (!problem) is_moved = co_await until_complete(record, number, to);
  is_moved = is_moved && shard.owner && shard.incoming && !record->is_deleted;
  parts_.records.set_incoming(*record, number, std::nullopt);
  if (record->is_deleted) co_return;
  if (!is_moved) {
    tools_.log.warn("parameter {} shard={} stays where it is: {}", name, number,
                    problem ? problem->detail : to.worker + " was not filled");
    parts_.drops.drop(name, number, {{to, shard.epoch}});
    shard.clients_epoch = ShardPlacement::never_told;
    co_return;
  }
  auto const before = *shard.owner;
  auto const backup = shard.backup;
  shard.is_backup_complete = false;
  problem = co_await parts_.owners.hand_to(record, number, to);
  if (record->is_deleted || !shard.owner || shard.is_unconfirmed || shard.owner->worker != to.worker) co_return;
  tools_.log.info("parameter {} shard={} epoch={} owner={} before={}", name, number, shard.epoch, to.worker,
                  before.worker);
  if (!backup) co_return;
  auto follows = false;
  if (!problem) follows = co_await until_complete(record, number, *backup);
  if (follows && shard.backup && shard.backup->worker == backup->worker) shard.is_backup_complete = true;
  parts_.records.keep(*record, number);
}

// Meanwhile the owner may be told to continue without this copy, which is then no longer filled. Or one of the two may
// miss an epoch: then the copy takes nothing until both are told again.
asio::awaitable<bool> ShardRepair::until_complete(ParameterRecordPtr record, std::uint32_t number, api::Member copy) {
  constexpr std::chrono::milliseconds first_pause{5}, longest_pause{250};
  auto const& membership = tools_.cluster.membership();
  auto const deadline = Clock::now() + tools_.patience.settling;
  auto const& shard = record->shards[number];
  for (auto between = first_pause; Clock::now() < deadline; between = std::min(between * 2, longest_pause)) {
    if (record->is_deleted || !shard.owner || !is_ready(membership, *shard.owner) || !is_ready(membership, copy))
      co_return false;
    if (!is_incarnation(shard.backup, copy.worker, copy.incarnation) &&
        !is_incarnation(shard.incoming, copy.worker, copy.incarnation))
      co_return false;
    if (shard.clients_epoch == ShardPlacement::never_told && !shard.is_unconfirmed) {
      static_cast<void>(co_await parts_.owners.confirm(record, number));
      co_await http::pause(between);
      continue;
    }
    auto const owner = *shard.owner;
    auto const said = co_await tools_.workers.look_at_shard(owner.url, record->parameter.name, number,
                                                            Clock::now() + tools_.patience.assignment);
    if (said.has_error()) {
      tools_.cluster.suspect(owner.worker, owner.incarnation);
    } else if (said.value().has_value()) {
      auto const& complete = said.value().value().backups_complete;
      if (std::ranges::find(complete, copy.worker) != complete.end() && is_ready(membership, copy)) co_return true;
    }
    co_await http::pause(between);
  }
  co_return false;
}

}  // namespace chorus::coordinator
