// Groups that are made, changed and deleted on request. Every change is told to all members before it is published.
#include <algorithm>

#include "base/logging/log.hpp"
#include "server/coordinator/cluster/cluster.hpp"
#include "server/coordinator/cluster/cluster_change.hpp"
#include "server/coordinator/cluster/tell_members.hpp"
#include "server/coordinator/text/identifier.hpp"

namespace chorus::coordinator {

namespace asio = boost::asio;
using http::Problem;
using http::ProblemCode;
using Clock = std::chrono::steady_clock;

namespace {

constexpr int most_attempts = 4;  // to find an epoch that every member takes
constexpr std::size_t most_groups = 4096;

}  // namespace

asio::awaitable<http::Checked<api::Group>> Cluster::put_group(std::string name, api::GroupRequest request) {
  if (!is_identifier(name)) co_return not_an_identifier("group", name, "");
  if (stopping_) co_return Problem(ProblemCode::unavailable, "the coordinator is stopping");
  auto const change = std::make_shared<Change>(tools_.executor, std::move(name), std::move(request));
  co_return co_await carried_out(change);
}

asio::awaitable<http::Checked<api::Group>> Cluster::carried_out(std::shared_ptr<Change> change) {
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
  if (!stopping_ && is_wanted && change->erases)
    result = co_await end_group(change);
  else if (!stopping_ && is_wanted)
    result = co_await make_epoch(change);
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
    auto const told = co_await tell(group, group.members);
    auto const problem = told->refusal();
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
      groups_.epoch_seen(change->name, told->epoch_seen());
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

asio::awaitable<std::shared_ptr<TellMembers>> Cluster::tell(api::Group group, std::vector<api::Member> members) {
  auto const name = group.name;
  auto const told = std::make_shared<TellMembers>(tools_.workers, tools_.executor, std::move(group), std::move(members),
                                                  api::to_hex(tools_.random()), Clock::now() + patience_.assignment);
  auto const on_silent = [this](api::Member const& member) { suspect(member.worker, member.incarnation); };
  for (std::size_t i = 0; i < told->tasks(); ++i)
    changes_.spawn("tell members of " + name, TellMembers::some(told, on_silent));
  co_await told->all();
  co_return told;
}

asio::awaitable<std::optional<Problem>> Cluster::erase_group(std::string name) {
  if (stopping_) co_return Problem(ProblemCode::unavailable, "the coordinator is stopping");
  auto const change = std::make_shared<Change>(tools_.executor, std::move(name), api::GroupRequest());
  change->erases = true;
  auto const ended = co_await carried_out(change);
  if (ended.has_error()) co_return ended.error();
  co_return std::nullopt;
}

asio::awaitable<http::Checked<api::Group>> Cluster::end_group(std::shared_ptr<Change> change) {
  if (auto const present = groups_.find(change->name); present.has_error()) co_return present.error();
  auto const last_epoch = groups_.draw_epoch(change->name);
  auto erased = groups_.erase(change->name).value();
  auto const& group = erased.group;
  tools_.group_statistics.forget(change->name);
  keep_epoch(change->name, erased.forgotten);
  keep_group(change->name);
  tell_of(group, "group.deleted", "");
  tools_.log.info("group {} epoch={} deleted", group.name, group.epoch);
  if (auto undurable = co_await tools_.journal.flush()) co_return std::move(*undurable);
  // An epoch without members: each worker ends its membership, and frees what it has of the group.
  api::Group nobody;
  nobody.name = group.name;
  nobody.epoch = last_epoch;
  nobody.state = "ready";
  auto members = group.members;
  std::erase_if(members, [&](api::Member const& member) {
    return std::ranges::find(group.lost, member.worker) != group.lost.end();
  });
  auto const told = co_await tell(std::move(nobody), std::move(members));
  for (auto const& refusal : told->refusals())
    tools_.log.info("group {} was deleted, and a member has not heard: {}", group.name, on_one_line(refusal.detail));
  co_return std::move(erased.group);
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

}  // namespace chorus::coordinator
