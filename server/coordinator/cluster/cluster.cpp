#include "server/coordinator/cluster/cluster.hpp"

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/logging/log.hpp"
#include "http/wire/errc.hpp"
#include "server/coordinator/cluster/cluster_change.hpp"
#include "server/coordinator/cluster/cluster_events.hpp"
#include "server/coordinator/cluster/tell_members.hpp"
#include "server/coordinator/text/identifier.hpp"

namespace chorus::coordinator {
namespace {

namespace asio = boost::asio;
using http::Problem;
using http::ProblemCode;
using Clock = std::chrono::steady_clock;

constexpr int most_attempts = 4;  // to find an epoch that every member takes
constexpr std::size_t most_groups = 4096;

}  // namespace

Cluster::Cluster(Tools tools, ClusterPatience patience, std::chrono::milliseconds lease)
    : tools_(std::move(tools)),
      patience_(patience),
      membership_(lease),
      pairs_({tools_.executor, tools_.workers, tools_.log}, patience_.pairs),
      turn_over_(tools_.executor),
      watch_(tools_.executor),
      changes_(tools_.executor) {}

Cluster::~Cluster() = default;

void Cluster::start(Listeners listeners) {
  listeners_ = std::move(listeners);
  tools_.group_statistics.stragglers.listen([this](api::Group const& group, api::SlowMember const& member,
                                                   bool is_slow) { tell_of(group, member, is_slow); });
  watch_.spawn("leases", watch_leases());
}

void Cluster::drain() {
  stopping_ = true;
  pairs_.look_again();
}

asio::awaitable<void> Cluster::stop() {
  drain();
  watch_.cancel();
  pairs_.cancel();
  co_await watch_.join();
  co_await pairs_.join();
  co_await changes_.join();
}

asio::awaitable<void> Cluster::watch_leases() {
  auto const pause = std::max(membership_.lease() / 10, std::chrono::milliseconds(1));
  asio::steady_timer timer(tools_.executor);
  for (;;) {
    auto const now = Clock::now();
    auto const expired = membership_.expire(now, cut_off(now));
    for (auto const& worker : expired.lost) {
      lose(worker, "its lease has passed", false);
      suspect(worker.id, api::to_hex(worker.incarnation));
    }
    for (auto const& id : expired.forgotten) keep_worker(id);
    count_members();
    mend_groups();
    timer.expires_after(pause);
    co_await timer.async_wait(asio::as_tuple(asio::use_awaitable));
  }
}

void Cluster::keep_worker(std::string const& id) {
  auto const kept = membership_.kept(id);
  tools_.journal.write(kept ? row_of(*kept) : without(Table::workers, id));
}

void Cluster::keep_group(std::string const& name) {
  auto const kept = groups_.kept(name);
  tools_.journal.write(kept ? row_of(*kept) : without(Table::groups, name));
}

void Cluster::keep_epoch(std::string const& name, std::optional<std::string> const& forgotten) {
  if (forgotten) {
    tools_.journal.write(without(Table::epochs, *forgotten));
    tools_.journal.write(row_of(Counter::epoch_floor, groups_.epochs().floor()));
  }
  if (forgotten != name) tools_.journal.write(row_of(name, groups_.epochs().kept(name)));
}

void Cluster::tell_of(Worker const& worker, char const* type, std::string const& why) {
  tools_.events.publish(event_of(worker, type, why));
}

void Cluster::tell_of(api::Group const& group, char const* type, std::string const& why) {
  tools_.events.publish(event_of(group, type, why));
}

void Cluster::tell_of(api::Group const& group, api::SlowMember const& member, bool is_slow) {
  auto event = event_of(group, member, is_slow);
  if (is_slow) tools_.log.warn("group {} epoch={}: {}", group.name, group.epoch, *event.detail);
  tools_.events.publish(std::move(event));
}

void Cluster::restore(JournalState state) {
  for (auto const& id : membership_.restore(state.workers, Clock::now())) keep_worker(id);
  for (auto const& kept : state.groups) remember_pairs(kept);
  auto const floor = static_cast<std::uint32_t>(state.counters[Counter::epoch_floor]);
  groups_.restore(std::move(state.groups), state.epochs, floor);
  count_members();
}

void Cluster::count_members() {
  auto const ready = membership_.ready_count();
  tools_.metrics.members(ready, membership_.all().size() - ready);
}

asio::awaitable<http::Checked<Cluster::Joined>> Cluster::join(api::JoinRequest request) {
  auto const newcomer = check_join(request);
  if (newcomer.has_error()) co_return newcomer.error();
  if (auto problem = membership_.refuse(newcomer.value())) co_return std::move(*problem);
  auto const& url = newcomer.value().url;
  if (auto const reached = co_await tools_.workers.probe(url, Clock::now() + patience_.probe); reached.has_error()) {
    Problem problem(ProblemCode::worker_unreachable, "worker '" + request.id + "' gave the address " + url +
                                                         " and does not answer there: " + reached.error().detail);
    problem.errors.push_back({"/url", problem.detail});
    co_return problem;
  }
  auto before = std::optional<Worker>();
  if (auto const* present = membership_.find(request.id)) before = *present;
  auto const joined = membership_.join(newcomer.value(), Clock::now());
  if (joined.has_error()) co_return joined.error();
  auto const worker = *membership_.find(request.id);
  if (joined.value().fenced && before->ready) lose(*before, "a new incarnation has its name", true);
  if (joined.value().taken_over) tell_of_takeover(worker);
  if (joined.value().changed()) {
    keep_worker(worker.id);
    tell_of(worker, "worker.joined", "");
    tools_.log.info("worker {} joined incarnation={} url={} locality={} version={}", worker.id, request.incarnation,
                    worker.url, to_string(worker.locality), worker.version);
  }
  count_members();
  mend_groups();
  if (listeners_.joined && joined.value().changed()) listeners_.joined(worker.id);
  if (!stopping_ && (joined.value().created || joined.value().fenced || joined.value().revived))
    watch_.spawn("links of " + worker.id, measure_links(worker));
  if (auto problem = co_await tools_.journal.flush()) co_return std::move(*problem);
  co_return Joined{show(worker), joined.value().created};
}

void Cluster::tell_of_takeover(Worker const& worker) {
  tools_.metrics.taken_over();
  auto const shown = membership_.show(worker, Clock::now());
  if (shown.takeovers != api::takeovers_of_a_contest) return;
  std::string rivals;
  for (auto const& url : shown.rivals) rivals += (rivals.empty() ? "" : ", ") + url;
  tools_.log.warn(
      "worker {}: processes take the name from each other, {} times within a minute, at {}: two supervisors start a "
      "worker of this name, stop one of them or give it another --id",
      worker.id, shown.takeovers, rivals);
}

http::Checked<api::LeaseAnswer> Cluster::renew(std::string_view id, api::LeaseRequest const& request) {
  auto const renewed = membership_.renew(id, request.incarnation, request.lease_ms, Clock::now());
  if (renewed.has_error()) return renewed.error();
  if (renewed->promise_changed) keep_worker(std::string(id));
  if (!stopping_)
    for (auto const& trouble : request.troubles) changes_.spawn("trouble in " + trouble.group, look_into(trouble));
  for (auto const& calls : request.calls) hear_of_calls(id, request.incarnation, calls);
  return api::LeaseAnswer{static_cast<std::uint32_t>(renewed->lease.count())};
}

void Cluster::hear_of_calls(std::string_view worker, std::string_view incarnation, api::GroupCalls const& calls) {
  auto const group = groups_.find(calls.group);
  if (group.has_error() || group.value()->epoch != calls.epoch) return;
  for (auto const& member : group.value()->members)
    if (member.worker == worker && member.incarnation == incarnation)
      tools_.group_statistics.stragglers.reported(*group.value(), member.rank, calls);
}

asio::awaitable<std::optional<Problem>> Cluster::leave(std::string id, std::optional<std::string> incarnation) {
  auto const left = membership_.leave(id, incarnation);
  if (left.has_error()) co_return left.error();
  keep_worker(id);
  tell_of(left.value(), "worker.left", "");
  tools_.log.info("worker {} left incarnation={}", left.value().id, api::to_hex(left.value().incarnation));
  degrade_groups_of(left.value(), "has left");
  count_members();
  mend_groups();
  if (listeners_.ended) listeners_.ended(left.value().id, api::to_hex(left.value().incarnation));
  // A lost write is harmless: after a restart the worker would come back as a member, and lose its lease.
  static_cast<void>(co_await tools_.journal.flush());
  co_return std::nullopt;
}

asio::awaitable<http::Checked<api::Group>> Cluster::put_group(std::string name, api::GroupRequest request) {
  if (!is_identifier(name)) co_return not_an_identifier("group", name, "");
  if (stopping_) co_return Problem(ProblemCode::unavailable, "the coordinator is stopping");
  auto const change = std::make_shared<Change>(tools_.executor, std::move(name), std::move(request));
  changes_.spawn("group " + change->name, change_group(change));
  while (!change->result) co_await change->changed.wait_until(TimePoint::max());
  co_return *change->result;
}

asio::awaitable<void> Cluster::change_group(std::shared_ptr<Change> change) {
  auto const ticket = tools_.locks.enter({"group:" + change->name});
  while (!tools_.locks.holds(ticket)) co_await tools_.locks_changed.wait_until(TimePoint::max());
  http::Checked<api::Group> result = Problem(ProblemCode::unavailable, "the coordinator is stopping");
  auto const present = groups_.find(change->name);
  if (change->mends) {
    mending_.erase(change->name);
    if (present.has_value()) change->request = present.value()->requested;
  }
  bool const is_wanted =
      !change->mends || (present.has_value() && needs_mending(*present.value(), change->broken_epoch));
  if (!stopping_ && is_wanted) result = co_await make_epoch(change);
  tools_.locks.leave(ticket);
  tools_.locks_changed.notify_all();
  change->result = std::move(result);
  change->changed.notify_all();
}

bool Cluster::keeps_order(Change const& change, api::Group const& former) {
  auto const order_of = [](api::GroupRequest const& request) { return request.order.value_or("locality"); };
  return change.mends || (!is_measured(change.request) && order_of(change.request) == order_of(former.requested));
}

asio::awaitable<http::Checked<api::Group>> Cluster::make_epoch(std::shared_ptr<Change> change) {
  if (groups_.all().size() >= most_groups && groups_.find(change->name).has_error())
    co_return Problem(ProblemCode::unavailable, std::to_string(most_groups) + " groups exist; delete one");
  auto const find_former = [&] {
    auto const present = groups_.find(change->name);
    return present.has_value() ? present.value() : nullptr;
  };
  auto former = find_former();
  auto members = pick_members(change->request, membership_, former.get());
  if (members.has_error()) co_return members.error();
  if (is_measured(change->request) && may_measure(*change)) {
    co_await measure_pairs(change, members.value());
    if (stopping_) co_return Problem(ProblemCode::unavailable, "the coordinator is stopping");
    // Workers may have joined or left meanwhile, and the group may have been deleted.
    former = find_former();
    members = pick_members(change->request, membership_, former.get());
    if (members.has_error()) co_return members.error();
  }
  auto const standing = standing_of(members.value(), change->request);
  bool const ranks_as_listed = is_listed(change->request);
  bool const keeps = former != nullptr && !ranks_as_listed && keeps_order(*change, *former);
  auto seniority = seniority_of(members.value(), FormerMembers(former.get()), keeps);
  seniority.ranks_as_listed = ranks_as_listed;
  auto const rank_assignment = co_await tools_.planner.arrange(standing, std::move(seniority));
  if (rank_assignment.has_error()) co_return Problem(ProblemCode::internal, rank_assignment.error().detail);
  for (int attempt = 1;; ++attempt) {
    auto const epoch = groups_.draw_epoch(change->name);
    keep_epoch(change->name);
    if (auto problem = co_await tools_.journal.flush()) {
      keep_epoch(change->name, groups_.drawn_in_vain(change->name));
      co_return std::move(*problem);
    }
    auto const group =
        make_group(change->name, epoch, change->request, members.value(), rank_assignment.value(), former.get());
    auto const problem = co_await tell_members(change, group);
    if (!problem) {
      auto const published = groups_.publish(group, membership_, in_order(standing, rank_assignment.value().order));
      keep_group(published.name);
      tell_of(published, "group.epoch", "");
      if (published.state != "ready") tell_of(published, "group.degraded", "a member was lost meanwhile");
      tools_.metrics.epoch_changed(change->reason());
      tools_.log.info("group {} epoch={} members={} state={} stretch={:.2f} before={:.2f}", published.name, epoch,
                      published.members.size(), published.state, published.stretch.assigned,
                      published.stretch.arrival_order);
      auto const as_published = published;
      if (listeners_.group_changed) listeners_.group_changed(as_published.name);
      if (auto undurable = co_await tools_.journal.flush()) co_return std::move(*undurable);
      co_return as_published;
    }
    // Workers that outlived another coordinator have seen higher epochs of this name: continue above them.
    if (problem->code == ProblemCode::epoch_fenced && attempt < most_attempts) {
      groups_.epoch_seen(change->name, change->epoch_seen);
      continue;
    }
    keep_epoch(change->name, groups_.change_failed(change->name, epoch));
    keep_group(change->name);
    if (auto const kept = groups_.find(change->name); kept.has_value())
      tell_of(*kept.value(), "group.degraded", "epoch " + std::to_string(epoch) + " was not taken: " + problem->detail);
    tools_.log.warn("group {} epoch={} not taken: {}", change->name, epoch, on_one_line(problem->detail));
    co_return *problem;
  }
}

asio::awaitable<std::optional<Problem>> Cluster::tell_members(std::shared_ptr<Change> change, api::Group group) {
  auto const tell = std::make_shared<TellMembers>(tools_.workers, tools_.executor, std::move(group),
                                                  api::to_hex(tools_.random()), Clock::now() + patience_.assignment);
  for (std::size_t i = 0; i < tell->tasks(); ++i)
    changes_.spawn("tell members of " + change->name, TellMembers::some(tell, [this](api::Member const& member) {
                     suspect(member.worker, member.incarnation);
                   }));
  co_await tell->all();
  change->epoch_seen = std::max(change->epoch_seen, tell->epoch_seen());
  co_return tell->refusal();
}

asio::awaitable<std::optional<Problem>> Cluster::erase_group(std::string name) {
  auto const erased = groups_.erase(name);
  if (erased.has_error()) co_return erased.error();
  auto const& group = erased.value().group;
  tools_.group_statistics.forget(name);
  keep_epoch(name, erased.value().forgotten);
  keep_group(name);
  tell_of(group, "group.deleted", "");
  tools_.log.info("group {} epoch={} deleted", group.name, group.epoch);
  co_return co_await tools_.journal.flush();
}

asio::awaitable<http::Checked<api::Member>> Cluster::member(std::string name, std::uint32_t rank) {
  auto const found = groups_.find(name);
  if (found.has_error()) co_return found.error();
  auto const& group = *found.value();
  if (rank >= group.members.size())
    co_return Problem(ProblemCode::unknown_worker, "group '" + name + "' has " + std::to_string(group.members.size()) +
                                                       " ranks, none of which is " + std::to_string(rank));
  auto member = group.members[rank];
  if (!member.roles.empty()) co_return member;
  auto roles = co_await tools_.planner.roles(groups_.standing(group), group.selection, rank);
  if (roles.has_error()) co_return Problem(ProblemCode::internal, roles.error().detail);
  member.roles = std::move(roles.value());
  co_return member;
}

http::Checked<api::Worker> Cluster::find(std::string_view id) const {
  if (auto const* worker = membership_.find(id)) return show(*worker);
  auto const shown = is_identifier(id) ? " '" + std::string(id) + "'" : std::string();
  return Problem(ProblemCode::unknown_worker, "no worker" + shown + " has joined");
}

api::Worker Cluster::show(Worker const& worker) const {
  auto shown = membership_.show(worker, Clock::now());
  shown.groups = groups_.names_with(worker.id);
  return shown;
}

api::Group Cluster::show(api::Group group) const {
  group.slow = tools_.group_statistics.stragglers.slow(group);
  return group;
}

boost::asio::awaitable<http::Checked<api::Reachability>> Cluster::reach(std::string id) {
  auto const worker = find(id);
  if (worker.has_error()) co_return worker.error();
  api::Reachability reachability{worker->id, worker->url, true, 0, std::nullopt};
  auto const begun = std::chrono::steady_clock::now();
  auto const answered = co_await tools_.workers.probe(worker->url, begun + patience_.probe);
  reachability.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  reachability.reachable = answered.has_value();
  if (answered.has_error()) reachability.detail = answered.error().detail;
  co_return reachability;
}

}  // namespace chorus::coordinator
