#include "server/coordinator/cluster/cluster.hpp"

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/logging/log.hpp"
#include "http/wire/errc.hpp"
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
      state_({tools_.journal, tools_.events, tools_.metrics, tools_.log}, lease),
      joining_links_({tools_.executor, tools_.workers, state_.membership(), tools_.planner, tools_.log},
                     patience_.measuring),
      group_changes_(tools_, state_, {patience_.assignment, patience_.pairs},
                     [this](api::Member const& member) { suspect(member.worker, member.incarnation); }),
      suspicions_({tools_.executor, tools_.workers, state_}, patience_.suspicion,
                  {[this](Worker const& worker, std::string const& why) { lose(worker, why, true); },
                   [this](Worker const& worker) { tell_end(worker); },
                   [this](std::string const& group, std::uint32_t epoch) { group_changes_.mend(group, epoch); }}),
      watch_(tools_.executor) {}

void Cluster::start(Listeners listeners) {
  listeners_ = std::move(listeners);
  group_changes_.listen(listeners_.group_changed);
  tools_.group_statistics.stragglers.listen([this](api::Group const& group, api::SlowMember const& member,
                                                   bool is_slow) { state_.tell_of(group, member, is_slow); });
  watch_.spawn("leases", watch_leases());
  group_changes_.resume();
}

void Cluster::drain() {
  state_.drain();
  group_changes_.look_again();
}

asio::awaitable<void> Cluster::stop() {
  drain();
  watch_.cancel();
  group_changes_.cancel();
  co_await watch_.join();
  co_await suspicions_.join();
  co_await group_changes_.join();
}

asio::awaitable<void> Cluster::watch_leases() {
  auto const pause = std::max(state_.membership().lease() / 10, std::chrono::milliseconds(1));
  asio::steady_timer timer(tools_.executor);
  for (;;) {
    auto const now = Clock::now();
    auto const expired = state_.membership().expire(now, cut_off(state_, now));
    for (auto const& worker : expired.lost) {
      lose(worker, "its lease has passed", false);
      suspect(worker.id, api::to_hex(worker.incarnation));
    }
    for (auto const& id : expired.forgotten) state_.keep_worker(id);
    members_changed();
    timer.expires_after(pause);
    co_await timer.async_wait(asio::as_tuple(asio::use_awaitable));
  }
}

void Cluster::restore(JournalState state) {
  for (auto const& kept : state.groups) group_changes_.remember_pairs(kept);
  state_.restore(std::move(state));
}

void Cluster::members_changed() {
  state_.count_members();
  group_changes_.mend_all();
}

void Cluster::tell_end(Worker const& worker) {
  if (listeners_.ended) listeners_.ended(worker.id, api::to_hex(worker.incarnation));
}

void Cluster::lose(Worker const& worker, std::string const& why, bool has_ended) {
  logging::warn(tools_.log, "worker.lost", "worker " + worker.id + " lost: " + on_one_line(why),
                {{"worker", worker.id}, {"incarnation", api::to_hex(worker.incarnation)}});
  state_.keep_worker(worker.id);
  state_.tell_of(worker, "worker.lost", why);
  state_.degrade_groups_of(worker, "is lost");
  group_changes_.look_again();
  members_changed();
  if (listeners_.lost) listeners_.lost(worker.id, api::to_hex(worker.incarnation), why);
  if (has_ended) tell_end(worker);
}

asio::awaitable<http::Checked<Cluster::Joined>> Cluster::join(api::JoinRequest request) {
  auto const newcomer = check_join(request);
  if (newcomer.has_error()) co_return newcomer.error();
  if (auto problem = state_.membership().refuse(newcomer.value())) co_return std::move(*problem);
  auto const& url = newcomer.value().url;
  if (auto const reached = co_await tools_.workers.probe(url, Clock::now() + patience_.probe); reached.has_error()) {
    Problem problem(ProblemCode::worker_unreachable, "worker '" + request.id + "' gave the address " + url +
                                                         " and does not answer there: " + reached.error().detail);
    problem.errors.push_back({"/url", problem.detail});
    co_return problem;
  }
  auto before = std::optional<Worker>();
  if (auto const* present = state_.membership().find(request.id)) before = *present;
  auto const joined = state_.membership().join(newcomer.value(), Clock::now());
  if (joined.has_error()) co_return joined.error();
  auto const worker = *state_.membership().find(request.id);
  if (joined.value().fenced && before->ready) lose(*before, "a new incarnation has its name", true);
  if (joined.value().taken_over) tell_of_takeover(worker);
  if (joined.value().changed()) {
    state_.keep_worker(worker.id);
    state_.tell_of(worker, "worker.joined", "");
    tools_.log.info("worker {} joined incarnation={} url={} locality={} version={}", worker.id, request.incarnation,
                    worker.url, to_string(worker.locality), worker.version);
  }
  members_changed();
  if (listeners_.joined && joined.value().changed()) listeners_.joined(worker.id);
  if (!state_.is_draining() && (joined.value().created || joined.value().fenced || joined.value().revived))
    watch_.spawn("links of " + worker.id, joining_links_.measure(worker));
  if (auto problem = co_await tools_.journal.flush()) co_return std::move(*problem);
  co_return Joined{show(worker), joined.value().created};
}

void Cluster::tell_of_takeover(Worker const& worker) {
  tools_.metrics.taken_over();
  auto const shown = state_.membership().show(worker, Clock::now());
  if (shown.takeovers != api::takeovers_of_a_contest) return;
  std::string rivals;
  for (auto const& url : shown.rivals) rivals += (rivals.empty() ? "" : ", ") + url;
  tools_.log.warn(
      "worker {}: processes take the name from each other, {} times within a minute, at {}: two supervisors start a "
      "worker of this name, stop one of them or give it another --id",
      worker.id, shown.takeovers, rivals);
}

http::Checked<api::LeaseAnswer> Cluster::renew(std::string_view id, api::LeaseRequest const& request) {
  auto const renewed = state_.membership().renew(id, request.incarnation, request.lease_ms, Clock::now());
  if (renewed.has_error()) return renewed.error();
  if (renewed->promise_changed) state_.keep_worker(std::string(id));
  for (auto const& trouble : request.troubles) {
    group_changes_.remember_failure(trouble.group, trouble.epoch);
    suspicions_.look_into(trouble);
  }
  for (auto const& calls : request.calls) hear_of_calls(id, request.incarnation, calls);
  return api::LeaseAnswer{static_cast<std::uint32_t>(renewed->lease.count())};
}

void Cluster::hear_of_calls(std::string_view worker, std::string_view incarnation, api::GroupCalls const& calls) {
  auto const group = state_.groups().find(calls.group);
  if (group.has_error() || group.value()->epoch != calls.epoch) return;
  for (auto const& member : group.value()->members)
    if (member.worker == worker && member.incarnation == incarnation)
      tools_.group_statistics.stragglers.reported(*group.value(), member.rank, calls);
}

asio::awaitable<std::optional<Problem>> Cluster::leave(std::string id, std::optional<std::string> incarnation) {
  auto const left = state_.membership().leave(id, incarnation);
  if (left.has_error()) co_return left.error();
  state_.keep_worker(id);
  state_.tell_of(left.value(), "worker.left", "");
  tools_.log.info("worker {} left incarnation={}", left.value().id, api::to_hex(left.value().incarnation));
  state_.degrade_groups_of(left.value(), "has left");
  group_changes_.look_again();
  members_changed();
  tell_end(left.value());
  // A lost write is harmless: after a restart the worker would come back as a member, and lose its lease.
  static_cast<void>(co_await tools_.journal.flush());
  co_return std::nullopt;
}

http::Checked<api::Worker> Cluster::find(std::string_view id) const {
  if (auto const* worker = state_.membership().find(id)) return show(*worker);
  auto const shown = is_identifier(id) ? " '" + std::string(id) + "'" : std::string();
  return Problem(ProblemCode::unknown_worker, "no worker" + shown + " has joined");
}

api::Worker Cluster::show(Worker const& worker) const {
  auto shown = state_.membership().show(worker, Clock::now());
  shown.groups = state_.groups().names_with(worker.id);
  return shown;
}

api::Group Cluster::show(api::Group group) const {
  group.slow = tools_.group_statistics.stragglers.slow(group);
  return group;
}

asio::awaitable<http::Checked<api::Member>> Cluster::member(std::string name, std::uint32_t rank) {
  auto const found = state_.groups().find(name);
  if (found.has_error()) co_return found.error();
  auto const& group = *found.value();
  if (rank >= group.members.size())
    co_return Problem(ProblemCode::unknown_worker, "group '" + name + "' has " + std::to_string(group.members.size()) +
                                                       " ranks, none of which is " + std::to_string(rank));
  auto member = group.members[rank];
  if (!member.roles.empty()) co_return member;
  auto roles = co_await tools_.planner.roles(state_.groups().standing(group), group.selection, rank);
  if (roles.has_error()) co_return Problem(ProblemCode::internal, roles.error().detail);
  member.roles = std::move(roles.value());
  co_return member;
}

http::Checked<std::vector<api::MeasuredLink>> Cluster::links_of(std::string_view name) const {
  auto const group = state_.groups().find(name);
  if (group.has_error()) return group.error();
  std::vector<api::MeasuredLink> links;
  auto const standing = state_.groups().standing(*group.value());
  if (!standing.pairs) return links;
  auto const& members = group.value()->members;
  for (auto const& pair : *standing.pairs) {
    auto const& from = members[pair.a];
    auto const& to = members[pair.b];
    auto const level = shared_level(from.locality, to.locality);
    links.push_back({from.worker, to.worker, std::string(chorus::name(level)), pair.latency_s, pair.bytes_per_s});
  }
  return links;
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
