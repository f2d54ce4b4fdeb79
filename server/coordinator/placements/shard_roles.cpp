#include "server/coordinator/placements/shard_roles.hpp"

#include <charconv>

namespace chorus::coordinator {
namespace {

namespace asio = boost::asio;
using http::Problem;
using http::ProblemCode;
using Clock = std::chrono::steady_clock;

constexpr std::uint32_t highest_epoch_believed = 1U << 31;  // limit for epochs that a worker claims to have seen

api::ShardAssignment assignment_of(ParameterRecord const& record, std::uint32_t number, api::Member const& member,
                                   ShardRole role, ShardData data) {
  auto const& shard = record.shards[number];
  auto const is_owner = role == ShardRole::owner;
  api::ShardAssignment assignment;
  assignment.parameter = record.parameter;
  assignment.shard = number;
  assignment.begin = shard.range.begin;
  assignment.end = shard.range.end;
  assignment.epoch = shard.epoch;
  assignment.role = is_owner ? "owner" : "backup";
  assignment.worker = member.worker;
  assignment.incarnation = member.incarnation;
  assignment.fresh = data == ShardData::initial;
  assignment.continues = data == ShardData::kept;
  assignment.recover = data == ShardData::logged;
  if (assignment.fresh) assignment.checkpoint = record.checkpoint;
  for (auto const& follower : {shard.backup, shard.incoming})
    if (is_owner && follower && follower->worker != member.worker)
      assignment.backups.push_back({follower->worker, follower->incarnation, follower->url});
  return assignment;
}

}  // namespace

ShardRoles::ShardRoles(PlacementTools const& tools, ParameterRecords& records)
    : tools_(tools), records_(records), assignments_(tools.executor, tools.workers) {}

std::optional<std::uint64_t> ShardRoles::term_of(api::Member const& member) const {
  auto const* worker = tools_.cluster.membership().find(member.worker);
  return worker == nullptr ? std::nullopt : worker->term;
}

asio::awaitable<std::optional<Problem>> ShardRoles::tell(ParameterRecordPtr record, std::uint32_t number,
                                                         api::Member member, ShardRole role, ShardData data) {
  auto assignment = assignment_of(*record, number, member, role, data);
  assignment.term = term_of(member);
  if (auto const* worker = tools_.cluster.membership().find(member.worker); worker && is_of_release_0_1(*worker))
    assignment.parameter.uid.reset();
  auto const epoch = assignment.epoch;
  if (auto undurable = co_await tools_.journal.flush()) co_return undurable;
  if (record->is_deleted) co_return Problem(ProblemCode::cancelled, "the parameter was deleted meanwhile");
  // Before its answer a worker writes the initial values, and up to three times as much of the optimizer's state, at 64
  // MiB per second or more.
  auto const filling =
      std::chrono::milliseconds(assignment.fresh && !record->parameter.lazy_rows ? record->parameter.bytes >> 14 : 0);
  auto const is_read = assignment.checkpoint || assignment.recover || record->shards[number].has_log;
  auto const patience = (is_read ? tools_.patience.loading : tools_.patience.assignment) + filling;
  auto const said = co_await assignments_.assign(member.url, std::move(assignment), Clock::now() + patience);
  auto const title = "worker '" + member.worker + "', shard " + std::to_string(number) + ": ";
  if (said.has_error()) {
    tools_.cluster.suspect(member.worker, member.incarnation);
    co_return Problem(ProblemCode::worker_unreachable, title + said.error().detail);
  }
  // The order to drop the shard of a deleted parameter may have overtaken this one.
  if (said.value().has_value() && record->is_deleted)
    static_cast<void>(co_await tools_.workers.drop_shard(member.url, record->parameter.name, number, epoch,
                                                         Clock::now() + tools_.patience.assignment));
  if (said.value().has_value()) co_return std::nullopt;
  auto problem = said.value().error();
  if (problem.code == ProblemCode::epoch_fenced) heed_epoch(record->parameter.name, problem);
  problem.detail = title + problem.detail;
  co_return problem;
}

asio::awaitable<std::optional<Problem>> ShardRoles::tell_followers(ParameterRecordPtr record, std::uint32_t number) {
  auto const& shard = record->shards[number];
  auto problem = std::optional<Problem>();
  if (shard.backup) problem = co_await tell(record, number, *shard.backup, ShardRole::backup, ShardData::kept);
  if (shard.incoming && !problem)
    problem = co_await tell(record, number, *shard.incoming, ShardRole::backup, ShardData::kept);
  co_return problem;
}

// Workers that outlived another coordinator have seen higher epochs of this name: continue above them.
void ShardRoles::heed_epoch(std::string const& name, Problem const& problem) {
  for (auto const& error : problem.errors) {
    if (error.pointer != "/epoch") continue;
    std::uint32_t epoch = 0;
    auto const* const end = error.detail.data() + error.detail.size();
    auto const [rest, failure] = std::from_chars(error.detail.data(), end, epoch);
    if (failure == std::errc() && rest == end && epoch < highest_epoch_believed) records_.epochs().seen(name, epoch);
  }
}

}  // namespace chorus::coordinator
