#include "server/coordinator/parameters/parameter_directory.hpp"

#include <algorithm>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <functional>
#include <numeric>
#include <utility>

#include "http/wire/errc.hpp"

namespace chorus::coordinator {
namespace {

namespace asio = boost::asio;
using http::Problem;
using http::ProblemCode;
using Clock = std::chrono::steady_clock;

constexpr std::size_t most_parameters = 100'000;
constexpr std::uint64_t shard_overhead_bytes = 256;  // makes empty shards count as load, so that they are spread too

Problem unknown(std::string_view name) {
  auto const shown = api::is_parameter_name(name) ? " '" + std::string(name) + "'" : std::string();
  return {ProblemCode::unknown_parameter, "no parameter" + shown + "; make one with PUT /v1/parameters/{name}"};
}

api::ParameterEndpoint endpoint(ParameterDirectory::Shard const& shard, std::uint32_t number, api::Member const& member,
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

}  // namespace

ParameterDirectory::ParameterDirectory(Tools tools, DirectoryPatience patience)
    : tools_(tools),
      patience_(patience),
      dropped_(tools.executor),
      orders_(tools.executor, tools.workers),
      tasks_(tools.executor) {}

ParameterDirectory::~ParameterDirectory() = default;

asio::awaitable<void> ParameterDirectory::stop() {
  is_stopping_ = true;
  tasks_.cancel();
  co_await tasks_.join();
  co_await orders_.stop();
}

asio::awaitable<void> ParameterDirectory::pause(std::chrono::milliseconds duration) {
  return pause_until(Clock::now() + duration);
}

asio::awaitable<void> ParameterDirectory::pause_until(TimePoint end) {
  if (end <= Clock::now()) co_return;
  asio::steady_timer timer(tools_.executor, end);
  co_await timer.async_wait(asio::use_awaitable);
}

bool ParameterDirectory::is_ready(api::Member const& member) const {
  auto const* worker = tools_.cluster.membership().find(member.worker);
  return worker != nullptr && worker->ready && api::to_hex(worker->incarnation) == member.incarnation;
}

std::vector<api::Member> ParameterDirectory::ready_members(std::string const& group) const {
  auto const found = tools_.cluster.groups().find(group);
  std::vector<api::Member> members;
  if (found.has_value())
    std::ranges::copy_if(found.value()->members, std::back_inserter(members), [this](api::Member const& member) {
      return is_ready(member) && !leaving_.contains({member.worker, member.incarnation});
    });
  return members;
}

// Sets the clients as requested; otherwise to the group's workers, including lost ones until the next PUT of the group.
void ParameterDirectory::update_clients(Record& record) const {
  if (record.parameter.staleness < 0) return record.parameter.clients.clear();
  if (record.request.clients) return;
  auto const group = tools_.cluster.groups().find(record.parameter.group);
  if (group.has_error()) return;
  std::vector<std::string> clients;
  for (auto const& member : group.value()->members) clients.push_back(member.worker);
  if (clients == record.parameter.clients) return;
  record.parameter.clients = std::move(clients);
  ++record.clients_epoch;
}

void ParameterDirectory::draw_epoch(Record& record, std::uint32_t shard) {
  record.parameter.epoch = epochs_.next(record.parameter.name);
  record.shards[shard].epoch = record.parameter.epoch;
  keep(record, shard);
}

std::uint64_t ParameterDirectory::load_of(Record const& record, std::uint32_t shard) const {
  auto const& range = record.shards[shard].range;
  auto elements = range.end - range.begin;
  if (auto const most = record.parameter.lazy_rows) {
    auto const& shape = record.parameter.shape;
    auto const row = std::accumulate(shape.begin() + 1, shape.end(), std::uint64_t{1}, std::multiplies<>());
    elements = std::min(elements / row, *most) * row;
  }
  return elements * element_bytes(*parse_dtype(record.parameter.dtype)) + shard_overhead_bytes;
}

void ParameterDirectory::set(RecordPtr const& record, std::uint32_t shard, bool owner,
                             std::optional<api::Member> member) {
  auto& place = owner ? record->shards[shard].owner : record->shards[shard].backup;
  auto const bytes = load_of(*record, shard);
  Key const key(record->parameter.name, shard);
  if (place) {
    load_[place->worker] -= bytes;
    shards_on_[place->worker].erase(key);
  }
  place = std::move(member);
  for (auto const& present : {record->shards[shard].owner, record->shards[shard].backup})
    if (present) shards_on_[present->worker].insert(key);
  if (place) load_[place->worker] += bytes;
  auto& changed = record->shards[shard];
  if (owner) {
    for (auto* const said_before : {&changed.lost_by, &changed.refused_by, &changed.why_refused}) said_before->clear();
    changed.owner_has_ended = false;
  } else {
    changed.is_backup_complete = changed.backup_has_ended = changed.is_backup_unfit = false;
  }
}

http::Checked<api::Parameter> ParameterDirectory::find(std::string_view name) const {
  auto const found = records_.find(name);
  if (found == records_.end()) return unknown(name);
  if (!found->second->is_established && found->second->is_resumed)
    return Problem(ProblemCode::unavailable, "parameter " + std::string(name) + " is being made");
  if (!found->second->is_established) return unknown(name);
  return show(*found->second);
}

api::Parameter ParameterDirectory::show(Record const& record) const {
  auto shown = record.parameter;
  for (auto const is_owner : {true, false})
    for (std::uint32_t i = 0; i < record.shards.size(); ++i) {
      auto const& shard = record.shards[i];
      auto const& member = is_owner ? shard.owner : shard.backup;
      if (!member || is_lost(record, shard)) continue;
      shown.endpoints.push_back(endpoint(shard, i, *member, is_owner));
      if (is_owner && (waits(record, shard) || has_refused(record, shard)))
        shown.endpoints.back().state = "unavailable";
    }
  shown.state = state_of(record);
  if (auto why = whom_waits_for(record); !why.empty()) shown.why = std::move(why);
  return shown;
}

asio::awaitable<http::Checked<ParameterDirectory::Made>> ParameterDirectory::put(std::string name,
                                                                                 api::ParameterRequest request) {
  auto checked = check_parameter(name, request);
  if (checked.has_error()) co_return checked.error();
  if (is_stopping_) co_return Problem(ProblemCode::unavailable, "the coordinator is stopping");
  auto const is_given_up = std::exchange(request.recreate, false);
  auto found = records_.find(name);
  auto const stands = [](std::string_view state) { return state == "ready" || state == "degraded"; };
  if (is_given_up && found != records_.end() && found->second->is_established && !stands(state_of(*found->second))) {
    if (auto const members = members_for(request); members.has_error()) co_return members.error();
    auto const before = found->second;
    co_await until_leases_end(before);
    if (!before->is_deleted && !stands(state_of(*before))) {
      tools_.log.warn("parameter {} is {}, and made anew", name, state_of(*before));
      remove(before);
    }
    found = records_.find(name);
  }
  if (found == records_.end()) {
    if (auto problem = co_await until_dropped(name)) co_return std::move(*problem);
    found = records_.find(name);
  }
  auto const created = found == records_.end();
  if (created) {
    if (records_.size() >= most_parameters)
      co_return Problem(ProblemCode::unavailable, std::to_string(most_parameters) + " parameters exist; delete one");
    auto const members = members_for(request);
    if (members.has_error()) co_return members.error();
    auto const record = place(std::move(checked.value()), std::move(request), members.value());
    found = records_.find(name);
    tasks_.spawn("parameter " + name, establish(record));
  } else if (found->second->request != request) {
    co_return Problem(ProblemCode::already_exists,
                      "parameter " + name + " exists with other settings; delete it to make another one");
  }
  auto const record = found->second;
  while (!record->is_established && !record->is_deleted) co_await record->changed.wait_until(TimePoint::max());
  if (record->is_deleted)
    co_return record->problems.empty() ? Problem(ProblemCode::cancelled, "the parameter was deleted meanwhile")
                                       : record->problems.front();
  Made made{show(*record), created};
  if (auto undurable = co_await tools_.journal.flush()) co_return std::move(*undurable);
  co_return made;
}

http::Checked<std::vector<api::Member>> ParameterDirectory::members_for(api::ParameterRequest const& request) const {
  auto const group = tools_.cluster.groups().find(request.group);
  if (group.has_error()) return group.error();
  auto members = ready_members(request.group);
  if (members.empty())
    return Problem(ProblemCode::not_enough_workers, "no member of group '" + request.group + "' is ready");
  if (request.replicas <= members.size()) return members;
  Problem problem(ProblemCode::not_enough_workers,
                  "replicas is 2, and only one member of group '" + request.group + "' is ready");
  problem.errors.push_back({"/replicas", problem.detail});
  return problem;
}

ParameterDirectory::RecordPtr ParameterDirectory::place(CheckedParameter checked, api::ParameterRequest request,
                                                        std::vector<api::Member> const& members) {
  auto const record = std::make_shared<Record>(tools_.executor);
  record->request = std::move(request);
  record->parameter = checked.parameter;
  update_clients(*record);
  auto const& name = record->parameter.name;
  record->parameter.epoch = epochs_.next(name);
  records_[name] = record;
  of_group_[record->parameter.group].insert(name);
  std::vector<std::string> used;
  auto const ranges = cut(checked, members.size());
  record->shards.resize(ranges.size());
  for (std::uint32_t i = 0; i < ranges.size(); ++i) {
    record->shards[i].range = ranges[i];
    record->shards[i].epoch = record->shards[i].backup_epoch = record->parameter.epoch;
    if (used.size() >= members.size()) used.clear();
    auto const& owner = least_loaded(members, load_, used);
    used.push_back(owner.worker);
    set(record, i, true, owner);
    if (record->parameter.replicas < 2) continue;
    if (auto const* backup = pick_backup(members, owner, load_)) set(record, i, false, *backup);
  }
  keep(*record);
  for (std::uint32_t i = 0; i < record->shards.size(); ++i) keep(*record, i);
  return record;
}

// All shards must come from the same checkpoint, so one worker is asked which is the newest.
asio::awaitable<std::optional<Problem>> ParameterDirectory::settle_checkpoint(RecordPtr record) {
  record->checkpoint = record->request.checkpoint;
  if (!record->checkpoint || record->checkpoint->number) co_return std::nullopt;
  auto const member = *record->shards.front().owner;
  auto const said =
      co_await tools_.workers.newest_checkpoint(member.url, record->checkpoint->name, Clock::now() + patience_.loading);
  if (said.has_error())
    co_return Problem(ProblemCode::worker_unreachable, "worker '" + member.worker + "': " + said.error().detail);
  if (said.value().has_error()) co_return said.value().error();
  record->checkpoint->number = said.value().value();
  co_return std::nullopt;
}

asio::awaitable<void> ParameterDirectory::establish(RecordPtr record) {
  if (auto problem = co_await settle_checkpoint(record)) {
    record->problems.push_back(std::move(*problem));
    remove(record);
    co_return;
  }
  if (record->checkpoint) keep(*record);
  record->pending = record->shards.size();
  for (std::uint32_t i = 0; i < record->shards.size(); ++i)
    tasks_.spawn("shard of " + record->parameter.name, establish_shard(record, i));
  while (record->pending > 0) co_await record->changed.wait_until(TimePoint::max());
  if (record->problems.empty() && !record->is_deleted) {
    record->is_established = true;
    keep(*record);
    tools_.log.info("parameter {} epoch={} shards={} replicas={}", record->parameter.name, record->parameter.epoch,
                    record->shards.size(), record->parameter.replicas);
    // Losses during the creation were handled before there was anything to repair.
    for (std::uint32_t i = 0; i < record->shards.size(); ++i) look_again({record->parameter.name, i});
  } else {
    remove(record);
  }
  record->changed.notify_all();
}

asio::awaitable<void> ParameterDirectory::establish_shard(RecordPtr record, std::uint32_t shard) {
  auto const backup = record->shards[shard].backup;
  auto problem = std::optional<Problem>();
  if (backup) problem = co_await tell(record, shard, *backup, false, true);
  if (!problem) problem = co_await tell(record, shard, *record->shards[shard].owner, true, true);
  if (problem) record->problems.push_back(std::move(*problem));
  record->shards[shard].is_backup_complete = backup.has_value();
  record->shards[shard].clients_epoch = record->clients_epoch;
  keep(*record, shard);
  --record->pending;
  record->changed.notify_all();
}

asio::awaitable<std::optional<Problem>> ParameterDirectory::erase(std::string name) {
  auto const found = records_.find(name);
  if (found == records_.end() || !found->second->is_established) co_return unknown(name);
  tools_.log.info("parameter {} deleted", name);
  remove(found->second);
  co_return co_await tools_.journal.flush();
}

void ParameterDirectory::remove(RecordPtr const& record) {
  auto const& name = record->parameter.name;
  record->is_deleted = true;
  record->changed.notify_all();
  for (std::uint32_t i = 0; i < record->shards.size(); ++i) {
    if (auto const former = std::exchange(record->shards[i].former, std::nullopt))
      record->shards[i].superseded.emplace_back(*former, record->shards[i].epoch);
    for (auto const& [holder, epoch] : std::exchange(record->shards[i].superseded, {}))
      drop_deleted(name, i, epoch, holder);
    if (auto const incoming = record->shards[i].incoming) {
      set_incoming(record, i, std::nullopt);
      drop_deleted(name, i, record->shards[i].epoch, *incoming);
    }
    for (auto const is_owner : {true, false}) {
      auto const member = is_owner ? record->shards[i].owner : record->shards[i].backup;
      if (!member) continue;
      set(record, i, is_owner, std::nullopt);
      drop_deleted(name, i, record->shards[i].epoch, *member);
    }
  }
  if (auto const group = of_group_.find(record->parameter.group); group != of_group_.end()) {
    group->second.erase(name);
    if (group->second.empty()) of_group_.erase(group);
  }
  forget(*record);
  if (auto const found = records_.find(name); found != records_.end() && found->second == record) records_.erase(found);
}

void ParameterDirectory::drop_deleted(std::string const& name, std::uint32_t shard, std::uint32_t epoch,
                                      api::Member const& member) {
  ++dropping_[name];
  tasks_.spawn("drop a shard of " + name, drop_to_the_end(member, name, shard, epoch));
}

// A worker that cannot be reached may serve the shard while its lease lasts.
asio::awaitable<void> ParameterDirectory::drop_to_the_end(api::Member member, std::string name, std::uint32_t shard,
                                                          std::uint32_t epoch) {
  co_await drop(member, name, shard, epoch);
  co_await pause_until(end_of_lease(member));
  if (auto const found = dropping_.find(name); --found->second == 0) dropping_.erase(found);
  dropped_.notify_all();
}

// Two parameters of one name must not take pushes at the same time.
asio::awaitable<std::optional<Problem>> ParameterDirectory::until_dropped(std::string name) {
  for (auto const deadline = Clock::now() + patience_.dropping; dropping_.contains(name);) {
    if (Clock::now() >= deadline)
      co_return Problem(ProblemCode::unavailable, "a deleted parameter " + name +
                                                      " is still served: its worker renews its lease and does not "
                                                      "drop it; try again, or use another name");
    co_await dropped_.wait_until(deadline);
  }
  co_return std::nullopt;
}

asio::awaitable<void> ParameterDirectory::drop(api::Member member, std::string name, std::uint32_t shard,
                                               std::uint32_t epoch) {
  // No worker needs the shard any more. A silent worker is asked for its shards when it joins again.
  while (!is_stopping_) {
    auto const said =
        co_await tools_.workers.drop_shard(member.url, name, shard, epoch, Clock::now() + patience_.assignment);
    if (said.has_value() || !is_ready(member)) co_return;
    co_await pause(patience_.repetition);
  }
}

}  // namespace chorus::coordinator
