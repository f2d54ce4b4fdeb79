#include "server/coordinator/cluster/cluster.hpp"

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/logging/log.hpp"
#include "http/wire/errc.hpp"
#include "server/coordinator/cluster/cluster_change.hpp"
#include "server/coordinator/cluster/cluster_events.hpp"
#include "server/coordinator/text/identifier.hpp"

namespace chorus::coordinator {
namespace {

namespace asio = boost::asio;
using http::Problem;
using http::ProblemCode;
using Clock = std::chrono::steady_clock;

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
