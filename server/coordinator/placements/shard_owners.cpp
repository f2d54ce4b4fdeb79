#include "server/coordinator/placements/shard_owners.hpp"

namespace chorus::coordinator {
namespace {

using http::Problem;
using http::ProblemCode;
using Clock = std::chrono::steady_clock;

}  // namespace

ShardOwners::Attempt ShardOwners::confirm(ParameterRecordPtr record, std::uint32_t number) {
  auto& shard = record->shards[number];
  auto const owner = *shard.owner;
  auto const told = record->clients_epoch;
  records_.draw_epoch(*record, number);
  auto const epoch = shard.epoch;
  auto const term = roles_.term_of(owner);
  auto problem = co_await roles_.tell(record, number, owner, ShardRole::owner, ShardData::kept);
  if (record->is_deleted || shard.epoch != epoch) co_return problem;
  if (problem) {
    shard.heed_loss(*problem);
    co_return problem;
  }
  if (roles_.term_of(owner) != term)
    co_return Problem(ProblemCode::unavailable, "worker '" + owner.worker + "' has a new lease since it was told");
  drops_.drop(record->parameter.name, number, shard.confirm());
  problem = co_await roles_.tell_followers(record, number);
  if (shard.epoch == epoch) shard.clients_epoch = problem ? ShardPlacement::never_told : told;
  records_.keep(*record, number);
  co_return problem;
}

ShardOwners::Attempt ShardOwners::tell_clients(ParameterRecordPtr record, std::uint32_t number) {
  auto& shard = record->shards[number];
  auto const told = record->clients_epoch;
  records_.draw_epoch(*record, number);
  auto const epoch = shard.epoch;
  // The owner first: it asks the backup until the backup has heard of the epoch, too.
  auto problem = co_await roles_.tell(record, number, *shard.owner, ShardRole::owner, ShardData::kept);
  if (problem) shard.heed_loss(*problem);
  if (!problem) problem = co_await roles_.tell_followers(record, number);
  if (!problem && shard.epoch == epoch) shard.clients_epoch = told;
  records_.keep(*record, number);
  co_return problem;
}

ShardOwners::Attempt ShardOwners::promote(ParameterRecordPtr record, std::uint32_t number) {
  auto& shard = record->shards[number];
  auto const heir = *shard.backup;
  if (!shard.is_backup_complete) {
    // The backup may be complete without the coordinator's knowledge. Data from before its last assignment do not
    // count.
    auto const said = co_await tools_.workers.look_at_shard(heir.url, record->parameter.name, number,
                                                            Clock::now() + tools_.patience.assignment);
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
  records_.set_backup(*record, number, std::nullopt);
  auto problem = co_await hand_to(record, number, heir);
  if (!problem)
    tools_.log.info("parameter {} shard={} epoch={} owner={} before={}", record->parameter.name, number, shard.epoch,
                    heir.worker, before ? before->worker : "-");
  co_return problem;
}

// The journal has the heir before the heir hears of it.
ShardOwners::Attempt ShardOwners::hand_to(ParameterRecordPtr record, std::uint32_t number, api::Member heir) {
  auto& shard = record->shards[number];
  if (shard.former) shard.superseded.push_back({*shard.former, shard.epoch});
  shard.former = shard.owner;
  records_.set_owner(*record, number, std::move(heir));
  shard.is_unconfirmed = true;
  return confirm(record, number);
}

ShardOwners::Attempt ShardOwners::recover(ParameterRecordPtr record, std::uint32_t number, api::Member owner) {
  auto& shard = record->shards[number];
  auto const& name = record->parameter.name;
  if (shard.backup) records_.set_backup(*record, number, std::nullopt);
  auto const told = record->clients_epoch;
  records_.draw_epoch(*record, number);
  auto const epoch = shard.epoch;
  auto problem = co_await roles_.tell(record, number, owner, ShardRole::owner, ShardData::logged);
  if (record->is_deleted || shard.epoch != epoch) co_return problem;
  if (!problem) {
    records_.set_owner(*record, number, owner);
    drops_.drop(name, number, shard.confirm());
    shard.clients_epoch = told;
    records_.keep(*record, number);
    tools_.log.info("parameter {} shard={} epoch={} owner={} recovered", name, number, epoch, owner.worker);
  } else if (problem->code == ProblemCode::parameter_lost && shard.former) {
    // An heir that has ended before it wrote a log has acknowledged no push.
    return_to_former(record, number);
    co_return std::nullopt;
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

void ShardOwners::return_to_former(ParameterRecordPtr const& record, std::uint32_t number) {
  auto& shard = record->shards[number];
  auto former = std::move(*shard.former);
  shard.former.reset();
  shard.superseded.push_back({*shard.owner, shard.epoch});
  tools_.log.warn("parameter {} shard={} goes back from worker {} to worker {}", record->parameter.name, number,
                  shard.owner->worker, former.worker);
  records_.set_owner(*record, number, std::move(former));
  shard.is_unconfirmed = true;
  if (auto const* now = tools_.cluster.membership().find(shard.owner->worker))
    shard.note_end(now->id, api::to_hex(now->incarnation));
  records_.keep(*record, number);
}

}  // namespace chorus::coordinator
