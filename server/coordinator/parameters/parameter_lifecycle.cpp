#include "server/coordinator/parameters/parameter_lifecycle.hpp"

namespace chorus::coordinator {
namespace {

namespace asio = boost::asio;
using http::Problem;
using http::ProblemCode;
using Clock = std::chrono::steady_clock;

constexpr int most_attempts = 4;  // to make a shard above the epochs of another coordinator

}  // namespace

asio::awaitable<void> ParameterLifecycle::stop() {
  tasks_.cancel();
  co_await tasks_.join();
}

void ParameterLifecycle::begin(ParameterRecordPtr const& record) {
  tasks_.spawn("parameter " + record->parameter.name, establish(record));
}

void ParameterLifecycle::end(ParameterRecordPtr record) {
  parts_.drops.drop_all(*record);
  parts_.records.remove(record);
}

// All shards must come from the same checkpoint, so one worker is asked which is the newest. A resumed creation
// continues with the answer that is in the journal.
asio::awaitable<std::optional<Problem>> ParameterLifecycle::settle_checkpoint(ParameterRecordPtr record) {
  if (!record->checkpoint) record->checkpoint = record->request.checkpoint;
  if (!record->checkpoint || record->checkpoint->number) co_return std::nullopt;
  auto const member = *record->shards.front().owner;
  auto const said = co_await tools_.workers.newest_checkpoint(member.url, record->checkpoint->name,
                                                              Clock::now() + tools_.patience.loading);
  if (said.has_error())
    co_return Problem(ProblemCode::worker_unreachable, "worker '" + member.worker + "': " + said.error().detail);
  if (said.value().has_error()) co_return said.value().error();
  record->checkpoint->number = said.value().value();
  co_return std::nullopt;
}

asio::awaitable<void> ParameterLifecycle::establish(ParameterRecordPtr record) {
  if (auto problem = co_await settle_checkpoint(record)) {
    record->problems.push_back(std::move(*problem));
    end(record);
    co_return;
  }
  if (record->checkpoint) parts_.records.keep(*record);
  record->pending = record->shards.size();
  for (std::uint32_t i = 0; i < record->shards.size(); ++i)
    tasks_.spawn("shard of " + record->parameter.name, establish_shard(record, i));
  while (record->pending > 0) co_await record->changed.wait_until(TimePoint::max());
  if (record->problems.empty() && !record->is_deleted) {
    record->is_established = true;
    parts_.records.keep(*record);
    tools_.log.info("parameter {} epoch={} shards={} replicas={}", record->parameter.name, record->parameter.epoch,
                    record->shards.size(), record->parameter.replicas);
    // Losses during the creation were handled before there was anything to repair.
    for (std::uint32_t i = 0; i < record->shards.size(); ++i) parts_.queue.look_again({record->parameter.name, i});
  } else {
    end(record);
  }
  record->changed.notify_all();
}

asio::awaitable<void> ParameterLifecycle::establish_shard(ParameterRecordPtr record, std::uint32_t number) {
  auto& shard = record->shards[number];
  auto const backup = shard.backup;
  auto problem = std::optional<Problem>();
  auto told = record->clients_epoch;
  auto epoch = shard.epoch;
  for (int attempt = 0; attempt < most_attempts; ++attempt) {
    // Not the first time: a worker has a copy of a parameter of this name that another coordinator has made, which kept
    // no journal. The new one begins above its epoch.
    if (attempt > 0) {
      parts_.records.draw_epoch(*record, number);
      shard.backup_epoch = epoch = shard.epoch;
      told = record->clients_epoch;
    }
    problem.reset();
    if (backup) problem = co_await parts_.roles.tell(record, number, *backup, ShardRole::backup, ShardData::initial);
    if (!problem)
      problem = co_await parts_.roles.tell(record, number, *shard.owner, ShardRole::owner, ShardData::initial);
    if (!problem || problem->code != ProblemCode::epoch_fenced || record->is_deleted) break;
  }
  if (problem) record->problems.push_back(std::move(*problem));
  shard.is_backup_complete = backup.has_value();
  if (shard.epoch == epoch) shard.clients_epoch = told;
  parts_.records.keep(*record, number);
  --record->pending;
  record->changed.notify_all();
}

}  // namespace chorus::coordinator
