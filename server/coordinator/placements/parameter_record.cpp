#include "server/coordinator/placements/parameter_record.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

#include "server/coordinator/placements/members.hpp"

namespace chorus::coordinator {
namespace {

constexpr std::uint64_t shard_overhead_bytes = 256;  // makes empty shards count as load, so that they are spread too

api::ParameterEndpoint endpoint(ShardPlacement const& shard, std::uint32_t number, api::Member const& member,
                                bool is_owner) {
  api::ParameterEndpoint shown;
  shown.shard = number;
  shown.elements = {shard.range.begin, shard.range.end};
  shown.role = is_owner ? "owner" : "backup";
  shown.worker = member.worker;
  shown.incarnation = member.incarnation;
  shown.url = member.url;
  shown.epoch = shard.epoch;
  return shown;
}

// Only for the latest incarnation of the owner: a new incarnation may be able to read the log.
bool refuses_its_log(ShardPlacement const& shard, Membership const& membership) {
  if (shard.refused_by.empty()) return false;
  auto const* const now = membership.find(shard.owner->worker);
  return now == nullptr || api::to_hex(now->incarnation) == shard.refused_by;
}

}  // namespace

std::string shown(api::Member const& member) {
  return "worker '" + member.worker + "' (incarnation " + member.incarnation + ")";
}

bool ShardPlacement::has_owner(Membership const& membership) const {
  return owner && is_ready(membership, *owner) && owner->incarnation != lost_by;
}

bool ShardPlacement::has_heir(Membership const& membership) const {
  return backup && is_ready(membership, *backup) && (is_backup_complete || !is_backup_unfit);
}

bool ShardPlacement::has_lost_owner() const {
  return owner && !has_log && (owner_has_ended || owner->incarnation == lost_by);
}

bool ShardPlacement::is_lost() const {
  if (!owner) return true;
  auto const may_have_it = backup && !backup_has_ended && !is_backup_unfit;
  return has_lost_owner() && !may_have_it && !former;
}

bool ShardPlacement::waits(Membership const& membership) const {
  return owner && !has_owner(membership) && !has_heir(membership) && !returned_owner(membership) &&
         !(former && has_lost_owner());
}

bool ShardPlacement::has_refused(Membership const& membership) const {
  return !why_refused.empty() && returned_owner(membership) && !has_owner(membership) && !has_heir(membership);
}

bool ShardPlacement::is_urgent(Membership const& membership) const {
  return (owner && (is_unconfirmed || !has_owner(membership))) || (backup && !is_ready(membership, *backup));
}

std::optional<api::Member> ShardPlacement::returned_owner(Membership const& membership) const {
  auto const* worker = has_log && owner ? membership.find(owner->worker) : nullptr;
  if (worker == nullptr || !worker->ready) return std::nullopt;
  auto back = as_member(*worker);
  if (back.incarnation == owner->incarnation || back.incarnation == refused_by) return std::nullopt;
  back.rank = owner->rank;
  return back;
}

std::vector<ShardPlacement::Copy> ShardPlacement::copies() const {
  auto all = superseded;
  for (auto const* holder : {&former, &incoming, &owner, &backup})
    if (*holder) all.push_back({**holder, epoch});
  return all;
}

void ShardPlacement::note_end(std::string const& worker, std::string const& present) {
  auto const has_ended = [&](std::optional<api::Member> const& member, bool before) {
    return member && member->worker == worker ? member->incarnation != present : before;
  };
  owner_has_ended = has_ended(owner, owner_has_ended);
  backup_has_ended = has_ended(backup, backup_has_ended);
}

void ShardPlacement::heed_loss(http::Problem const& problem) {
  if (problem.code == http::ProblemCode::parameter_lost && owner) lost_by = owner->incarnation;
}

std::vector<ShardPlacement::Copy> ShardPlacement::confirm() {
  is_unconfirmed = false;
  if (auto before = std::exchange(former, std::nullopt)) superseded.push_back({std::move(*before), epoch});
  return std::exchange(superseded, {});
}

std::uint64_t ParameterRecord::load_of(std::uint32_t shard) const {
  auto const& range = shards[shard].range;
  auto elements = range.end - range.begin;
  if (auto const most = parameter.lazy_rows) {
    auto const& shape = parameter.shape;
    auto const row = std::accumulate(shape.begin() + 1, shape.end(), std::uint64_t{1}, std::multiplies<>());
    elements = std::min(elements / row, *most) * row;
  }
  return elements * element_bytes(*parse_dtype(parameter.dtype)) + shard_overhead_bytes;
}

char const* ParameterRecord::state(Membership const& membership) const {
  auto waiting = false, degraded = false;
  for (auto const& shard : shards) {
    if (shard.is_lost()) return "lost";
    waiting |= shard.waits(membership) || shard.has_refused(membership);
    degraded |= shard.is_unconfirmed || !shard.has_owner(membership);
    degraded |= parameter.replicas > 1 && !(shard.backup && shard.is_backup_complete);
  }
  return waiting ? "unavailable" : degraded ? "degraded" : "ready";
}

std::string ParameterRecord::why(Membership const& membership) const {
  std::string waiting;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    auto const& shard = shards[i];
    auto const title = "shard " + std::to_string(i);
    if (shard.is_lost())
      return title +
             " is lost: " + (shard.owner ? shown(*shard.owner) + " had it, and does not any more" : "it was given up");
    bool const has_refused_now = shard.has_refused(membership);
    if (!waiting.empty() || !(shard.waits(membership) || has_refused_now)) continue;
    if (has_refused_now || refuses_its_log(shard, membership)) {
      waiting = title + ": " + shard.why_refused;
      continue;
    }
    waiting = title + " waits for " + shown(*shard.owner) + ", which is silent";
    if (shard.has_log) waiting += ", or for its next incarnation, which reads its log";
    if (shard.backup && !shard.is_backup_unfit && !shard.backup_has_ended)
      waiting += ", or for its backup, " + shown(*shard.backup);
  }
  return waiting;
}

api::Parameter ParameterRecord::show(Membership const& membership) const {
  auto shown = parameter;
  for (auto const is_owner : {true, false})
    for (std::uint32_t i = 0; i < shards.size(); ++i) {
      auto const& shard = shards[i];
      auto const& member = is_owner ? shard.owner : shard.backup;
      if (!member || shard.is_lost()) continue;
      shown.endpoints.push_back(endpoint(shard, i, *member, is_owner));
      if (is_owner && (shard.waits(membership) || shard.has_refused(membership)))
        shown.endpoints.back().state = "unavailable";
    }
  shown.state = state(membership);
  if (auto reason = why(membership); !reason.empty()) shown.why = std::move(reason);
  return shown;
}

}  // namespace chorus::coordinator
