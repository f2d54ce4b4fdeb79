#include "server/coordinator/parameters/parameter_directory.hpp"

#include <algorithm>
#include <utility>

#include "base/runtime/pause.hpp"

namespace chorus::coordinator {
namespace {

namespace asio = boost::asio;
using http::Problem;
using http::ProblemCode;
using Clock = std::chrono::steady_clock;

constexpr std::size_t most_parameters = 100'000;

Problem unknown(std::string_view name) {
  auto const shown = api::is_parameter_name(name) ? " '" + std::string(name) + "'" : std::string();
  return {ProblemCode::unknown_parameter, "no parameter" + shown + "; make one with PUT /v1/parameters/{name}"};
}

Problem stopping() {
  Problem problem(ProblemCode::unavailable, "the coordinator is stopping");
  problem.retry_after_s = 1;
  return problem;
}

bool stands(std::string_view state) { return state == "ready" || state == "degraded"; }

}  // namespace

ParameterDirectory::ParameterDirectory(Tools tools, DirectoryPatience patience)
    : tools_{tools.executor, tools.workers, tools.cluster, tools.journal, tools.log, patience, std::move(tools.random)},
      tasks_(tools.executor) {
  queue_.start([this](RecordPtr record, std::uint32_t shard) { return repair_.settle_losses(record, shard); },
               [this](RecordPtr record, std::uint32_t shard) { return repair_.restore_replicas(record, shard); });
}

// From the top down: no part starts work in one that has stopped.
asio::awaitable<void> ParameterDirectory::stop() {
  is_stopping_ = true;
  tasks_.cancel();
  co_await tasks_.join();
  co_await recovery_.stop();
  co_await lifecycle_.stop();
  co_await queue_.stop();
  co_await drops_.stop();
  co_await roles_.stop();
}

void ParameterDirectory::restore(JournalState const& state) { records_.restore(state); }

void ParameterDirectory::recover() {
  if (tools_.journal.on_disk()) recovery_.begin();
}

char const* ParameterDirectory::state_of(ParameterRecord const& record) const { return record.state(membership()); }

api::Parameter ParameterDirectory::show(ParameterRecord const& record) const { return record.show(membership()); }

http::Checked<api::Parameter> ParameterDirectory::find(std::string_view name) const {
  auto const found = records_.find(name);
  if (found == nullptr) return unknown(name);
  if (!found->is_established && found->is_resumed)
    return Problem(ProblemCode::unavailable, "parameter " + std::string(name) + " is being made");
  if (!found->is_established) return unknown(name);
  return show(*found);
}

asio::awaitable<http::Checked<ParameterDirectory::Made>> ParameterDirectory::put(std::string name,
                                                                                 api::ParameterRequest request) {
  auto checked = check_parameter(name, request);
  if (checked.has_error()) co_return checked.error();
  if (is_stopping_) co_return stopping();
  auto const is_given_up = std::exchange(request.recreate, false);
  auto record = records_.find(name);
  if (is_given_up && record != nullptr && record->is_established && !stands(state_of(*record))) {
    if (auto const members = members_for(request); members.has_error()) co_return members.error();
    co_await give_way(record);
    record = records_.find(name);
  }
  if (record == nullptr) {
    if (auto problem = co_await drops_.until_dropped(name)) co_return std::move(*problem);
    record = records_.find(name);
  }
  auto const created = record == nullptr;
  if (created) {
    if (records_.all().size() >= most_parameters)
      co_return Problem(ProblemCode::unavailable, std::to_string(most_parameters) + " parameters exist; delete one");
    auto const members = members_for(request);
    if (members.has_error()) co_return members.error();
    record = records_.add(std::move(checked.value()), std::move(request), members.value());
    lifecycle_.begin(record);
  } else if (record->request != request) {
    co_return Problem(ProblemCode::already_exists,
                      "parameter " + name + " exists with other settings; delete it to make another one");
  }
  while (!record->is_established && !record->is_deleted) co_await record->changed.wait_until(TimePoint::max());
  if (record->is_deleted)
    co_return record->problems.empty() ? Problem(ProblemCode::cancelled, "the parameter was deleted meanwhile")
                                       : record->problems.front();
  Made made{show(*record), created};
  if (auto undurable = co_await tools_.journal.flush()) co_return std::move(*undurable);
  co_return made;
}

asio::awaitable<void> ParameterDirectory::give_way(RecordPtr record) {
  co_await drops_.until_leases_end(record);
  if (record->is_deleted || stands(state_of(*record))) co_return;
  tools_.log.warn("parameter {} is {}, and made anew", record->parameter.name, state_of(*record));
  lifecycle_.end(record);
}

http::Checked<std::vector<api::Member>> ParameterDirectory::members_for(api::ParameterRequest const& request) const {
  auto const group = tools_.cluster.groups().find(request.group);
  if (group.has_error()) return group.error();
  auto members = candidates_.of(request.group);
  if (members.empty())
    return Problem(ProblemCode::not_enough_workers, "no member of group '" + request.group + "' is ready");
  if (request.replicas <= members.size()) return members;
  Problem problem(ProblemCode::not_enough_workers,
                  "replicas is 2, and only one member of group '" + request.group + "' is ready");
  problem.errors.push_back({"/replicas", problem.detail});
  return problem;
}

asio::awaitable<std::optional<Problem>> ParameterDirectory::erase(std::string name) {
  auto const found = records_.find(name);
  if (found == nullptr || !found->is_established) co_return unknown(name);
  tools_.log.info("parameter {} deleted", name);
  lifecycle_.end(found);
  co_return co_await tools_.journal.flush();
}

asio::awaitable<http::Checked<api::Parameter>> ParameterDirectory::give_up(std::string name) {
  if (auto const present = find(name); present.has_error()) co_return present.error();
  auto const record = records_.find(name);
  for (std::uint32_t number = 0; number < record->shards.size(); ++number) {
    auto& shard = record->shards[number];
    if (!shard.waits(membership())) continue;
    tools_.log.error("parameter {} shard={} is given up: it waited for {}", name, number, shown(*shard.owner));
    for (auto const& holder : {shard.owner, shard.backup, std::exchange(shard.former, std::nullopt)})
      if (holder) shard.superseded.push_back({*holder, shard.epoch});
    shard.is_unconfirmed = false;
    records_.set_owner(*record, number, std::nullopt);
    records_.set_backup(*record, number, std::nullopt);
    records_.keep(*record, number);
  }
  if (auto undurable = co_await tools_.journal.flush()) co_return std::move(*undurable);
  co_return show(*record);
}

void ParameterDirectory::shard_lost(std::string const& name, std::uint32_t number, std::string const& worker,
                                    std::string const& incarnation) {
  auto const record = records_.with({name, number});
  if (record == nullptr) return;
  auto& shard = record->shards[number];
  if (is_incarnation(shard.owner, worker, incarnation)) {
    // When the owner is told again to own the shard, it reports the loss, and its backup takes over. An order that it
    // has not answered yet is of a former epoch.
    records_.draw_epoch(*record, number);
    shard.clients_epoch = ShardPlacement::never_told;
    queue_.look_again({name, number});
  } else if (is_incarnation(shard.incoming, worker, incarnation)) {
    tools_.log.warn("parameter {} shard={} is not filled any more on worker {}", name, number, worker);
    records_.set_incoming(*record, number, std::nullopt);  // the task that waits for it tells the owner
  } else if (is_incarnation(shard.backup, worker, incarnation)) {
    tools_.log.warn("parameter {} shard={} has lost its backup on worker {}", name, number, worker);
    tasks_.spawn("go on without a backup of " + name, go_on_without_backup(record, number));
  }
}

// The owner acknowledges no push until it knows of this change.
asio::awaitable<void> ParameterDirectory::go_on_without_backup(RecordPtr record, std::uint32_t number) {
  auto& shard = record->shards[number];
  if (!shard.owner || !shard.backup) co_return;
  records_.set_backup(*record, number, std::nullopt);
  shard.is_unconfirmed = true;  // until the owner has been told
  static_cast<void>(co_await owners_.confirm(record, number));
  queue_.look_again({record->parameter.name, number});
}

void ParameterDirectory::worker_lost(std::string const& worker, std::string const& incarnation) {
  auto const keys = records_.shards_on(worker);
  if (keys.empty()) return;
  tools_.log.warn("worker {} incarnation={} had {} shards of parameters", worker, incarnation, keys.size());
  for (auto const& key : keys) queue_.look_again(key);
}

void ParameterDirectory::worker_ended(std::string const& worker, std::string const& incarnation) {
  auto const keys = records_.shards_on(worker);
  for (auto const& key : keys) {
    auto const record = records_.find(key.first);
    auto& shard = record->shards[key.second];
    auto const was_owner = is_incarnation(shard.owner, worker, incarnation);
    if (was_owner) shard.owner_has_ended = true;
    if (is_incarnation(shard.backup, worker, incarnation)) shard.backup_has_ended = true;
    records_.keep(*record, key.second);
    if (was_owner && shard.is_lost()) tools_.log.error("parameter {}: {}", key.first, record->why(membership()));
    queue_.look_again(key);
  }
}

void ParameterDirectory::worker_joined(std::string const& worker) {
  auto const* now = membership().find(worker);
  if (now == nullptr) return;
  auto const incarnation = api::to_hex(now->incarnation);
  auto const keys = records_.shards_on(worker);
  for (auto const& key : keys) {
    auto const record = records_.find(key.first);
    auto& shard = record->shards[key.second];
    shard.note_end(worker, incarnation);
    for (auto* const member : {&shard.owner, &shard.backup, &shard.incoming})
      if (is_incarnation(*member, worker, incarnation)) {
        (*member)->url = now->url;
        (*member)->locality = now->locality;
      }
    // The owner still has the shard, and takes no pushes before it is confirmed as the owner.
    if (shard.owner && shard.owner->worker == worker && is_ready(membership(), *shard.owner))
      shard.is_unconfirmed = true;
    records_.keep(*record, key.second);
    queue_.look_again(key);
  }
  look_for_backups(worker);
  recovery_.tidy(worker);
}

// A member that has come back may take backups that no other member could.
void ParameterDirectory::look_for_backups(std::string const& worker) {
  for (auto const& [group, names] : records_.by_group()) {
    auto const members = candidates_.of(group);
    if (std::ranges::find(members, worker, &api::Member::worker) == members.end()) continue;
    for (auto const& name : names) {
      auto const record = records_.find(name);
      for (std::uint32_t i = 0; record->parameter.replicas > 1 && i < record->shards.size(); ++i)
        if (!record->shards[i].backup || !record->shards[i].is_backup_complete) queue_.look_again({name, i});
    }
  }
}

void ParameterDirectory::group_changed(std::string const& group) {
  auto const found = records_.by_group().find(group);
  if (found == records_.by_group().end()) return;
  for (auto const& name : found->second) {
    auto const record = records_.find(name);
    auto const before = record->clients_epoch;
    records_.update_clients(*record);
    if (record->clients_epoch != before) records_.keep(*record);
    for (std::uint32_t i = 0; i < record->shards.size(); ++i) {
      record->shards[i].is_unbalanced = true;
      queue_.look_again({name, i});
    }
  }
}

asio::awaitable<http::Checked<std::size_t>> ParameterDirectory::hand_over(std::string worker, std::string incarnation,
                                                                          TimePoint deadline) {
  if (is_stopping_) co_return stopping();
  candidates_.leave(worker, incarnation);
  auto const keys = records_.shards_on(worker);
  for (auto const& key : keys) queue_.look_again(key);
  auto const can_go = [this](ShardKey const& key) {
    auto const record = records_.find(key.first);
    return record != nullptr && !candidates_.of(record->parameter.group).empty();
  };
  while (Clock::now() < deadline && !is_stopping_ && std::ranges::any_of(records_.shards_on(worker), can_go))
    co_await http::pause(std::chrono::milliseconds(10));
  candidates_.stay(worker, incarnation);
  if (is_stopping_) co_return stopping();
  co_return records_.shards_on(worker).size();
}

}  // namespace chorus::coordinator
