#include "server/coordinator/cluster/group_changes.hpp"

#include <algorithm>
#include <utility>

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

LinkMeasurements::End end_of(api::Member const& member) { return {member.worker, member.incarnation, member.url}; }

}  // namespace

// A PUT or DELETE of a group, shared by the handler that waits for it and the task that carries it out.
struct GroupChanges::Change {
  Change(boost::asio::any_io_executor executor, std::string n, api::GroupRequest r)
      : name(std::move(n)), request(std::move(r)), changed(std::move(executor)) {}
  std::string name;
  api::GroupRequest request;
  // True: no PUT, but a repair of the group, if it still needs one when its turn comes.
  bool mends = false;
  std::uint32_t broken_epoch = 0;
  bool erases = false;  // true: a DELETE, without a request
  [[nodiscard]] char const* reason() const { return !mends ? "request" : broken_epoch == 0 ? "members" : "trouble"; }
  http::Condition changed;
  std::optional<http::Checked<api::Group>> result;
};

GroupChanges::GroupChanges(ClusterTools const& tools, ClusterState& state, Patience patience,
                           std::function<void(api::Member const&)> on_silent)
    : tools_(tools),
      state_(state),
      patience_(patience),
      on_silent_(std::move(on_silent)),
      pairs_({tools_.executor, tools_.workers, tools_.log}, patience_.pairs),
      changes_(tools_.executor) {}

void GroupChanges::cancel() { pairs_.cancel(); }

asio::awaitable<void> GroupChanges::join() {
  co_await pairs_.join();
  co_await changes_.join();
}

asio::awaitable<http::Checked<api::Group>> GroupChanges::put(std::string name, api::GroupRequest request) {
  if (!is_identifier(name)) co_return not_an_identifier("group", name, "");
  if (state_.is_draining()) co_return Problem(ProblemCode::unavailable, "the coordinator is stopping");
  auto const change = std::make_shared<Change>(tools_.executor, std::move(name), std::move(request));
  co_return co_await carried_out(change);
}

asio::awaitable<http::Checked<api::Group>> GroupChanges::carried_out(std::shared_ptr<Change> change) {
  changes_.spawn("group " + change->name, change_group(change));
  while (!change->result) co_await change->changed.wait_until(TimePoint::max());
  co_return *change->result;
}

asio::awaitable<void> GroupChanges::change_group(std::shared_ptr<Change> change) {
  auto const ticket = tools_.locks.enter({"group:" + change->name});
  while (!tools_.locks.holds(ticket)) co_await tools_.locks_changed.wait_until(TimePoint::max());
  http::Checked<api::Group> result = Problem(ProblemCode::unavailable, "the coordinator is stopping");
  auto const present = state_.groups().find(change->name);
  if (change->mends) {
    mending_.erase(change->name);
    if (present.has_value()) change->request = present.value()->requested;
  }
  bool const is_wanted =
      !change->mends || (present.has_value() && needs_mending(*present.value(), change->broken_epoch));
  if (!state_.is_draining() && is_wanted && change->erases)
    result = co_await end_group(change);
  else if (!state_.is_draining() && is_wanted)
    result = co_await make_epoch(change);
  tools_.locks.leave(ticket);
  tools_.locks_changed.notify_all();
  change->result = std::move(result);
  change->changed.notify_all();
}

bool GroupChanges::keeps_order(Change const& change, api::Group const& former) {
  auto const order_of = [](api::GroupRequest const& request) { return request.order.value_or("locality"); };
  return change.mends || (!is_measured(change.request) && order_of(change.request) == order_of(former.requested));
}

asio::awaitable<http::Checked<api::Group>> GroupChanges::make_epoch(std::shared_ptr<Change> change) {
  if (state_.groups().all().size() >= most_groups && state_.groups().find(change->name).has_error())
    co_return Problem(ProblemCode::unavailable, std::to_string(most_groups) + " groups exist; delete one");
  auto const find_former = [&] {
    auto const present = state_.groups().find(change->name);
    return present.has_value() ? present.value() : nullptr;
  };
  auto former = find_former();
  auto members = pick_members(change->request, state_.membership(), former.get());
  if (members.has_error()) co_return members.error();
  if (is_measured(change->request) && may_measure(*change)) {
    co_await measure_pairs(change, members.value());
    if (state_.is_draining()) co_return Problem(ProblemCode::unavailable, "the coordinator is stopping");
    // Workers may have joined or left meanwhile, and the group may have been deleted.
    former = find_former();
    members = pick_members(change->request, state_.membership(), former.get());
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
    auto const epoch = state_.groups().draw_epoch(change->name);
    state_.keep_epoch(change->name);
    if (auto problem = co_await tools_.journal.flush()) {
      state_.keep_epoch(change->name, state_.groups().drawn_in_vain(change->name));
      co_return std::move(*problem);
    }
    auto const group =
        make_group(change->name, epoch, change->request, members.value(), rank_assignment.value(), former.get());
    auto const told = co_await tell(group, group.members);
    auto const problem = told->refusal();
    if (!problem) {
      auto const published =
          state_.groups().publish(group, state_.membership(), in_order(standing, rank_assignment.value().order));
      state_.keep_group(published.name);
      state_.tell_of(published, "group.epoch", "");
      if (published.state != "ready") state_.tell_of(published, "group.degraded", "a member was lost meanwhile");
      tools_.metrics.epoch_changed(change->reason());
      tools_.log.info("group {} epoch={} members={} state={} stretch={:.2f} before={:.2f}", published.name, epoch,
                      published.members.size(), published.state, published.stretch.assigned,
                      published.stretch.arrival_order);
      auto const as_published = published;
      if (on_epoch_) on_epoch_(as_published.name);
      if (auto undurable = co_await tools_.journal.flush()) co_return std::move(*undurable);
      co_return as_published;
    }
    // Workers that outlived another coordinator have seen higher epochs of this name: continue above them.
    if (problem->code == ProblemCode::epoch_fenced && attempt < most_attempts) {
      state_.groups().epoch_seen(change->name, told->epoch_seen());
      continue;
    }
    state_.keep_epoch(change->name, state_.groups().change_failed(change->name, epoch));
    state_.keep_group(change->name);
    if (auto const kept = state_.groups().find(change->name); kept.has_value())
      state_.tell_of(*kept.value(), "group.degraded",
                     "epoch " + std::to_string(epoch) + " was not taken: " + problem->detail);
    tools_.log.warn("group {} epoch={} not taken: {}", change->name, epoch, on_one_line(problem->detail));
    co_return *problem;
  }
}

asio::awaitable<std::shared_ptr<TellMembers>> GroupChanges::tell(api::Group group, std::vector<api::Member> members) {
  auto const name = group.name;
  auto const told = std::make_shared<TellMembers>(tools_.workers, tools_.executor, std::move(group), std::move(members),
                                                  api::to_hex(tools_.random()), Clock::now() + patience_.assignment);
  for (std::size_t i = 0; i < told->tasks(); ++i)
    changes_.spawn("tell members of " + name, TellMembers::some(told, on_silent_));
  co_await told->all();
  co_return told;
}

asio::awaitable<std::optional<Problem>> GroupChanges::erase(std::string name) {
  if (state_.is_draining()) co_return Problem(ProblemCode::unavailable, "the coordinator is stopping");
  auto const change = std::make_shared<Change>(tools_.executor, std::move(name), api::GroupRequest());
  change->erases = true;
  auto const ended = co_await carried_out(change);
  if (ended.has_error()) co_return ended.error();
  co_return std::nullopt;
}

asio::awaitable<http::Checked<api::Group>> GroupChanges::end_group(std::shared_ptr<Change> change) {
  if (auto const present = state_.groups().find(change->name); present.has_error()) co_return present.error();
  auto const last_epoch = state_.groups().draw_epoch(change->name);
  auto erased = state_.groups().erase(change->name).value();
  auto const& group = erased.group;
  tools_.group_statistics.forget(change->name);
  state_.keep_epoch(change->name, erased.forgotten);
  state_.keep_group(change->name);
  state_.tell_of(group, "group.deleted", "");
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

// A group that is repaired because it is not usable does not wait for measurements: it continues with the known links.
bool GroupChanges::may_measure(Change const& change) const {
  if (state_.is_draining()) return false;
  if (!change.mends) return true;
  auto const group = state_.groups().find(change.name);
  return change.broken_epoch == 0 && group.has_value() && group.value()->state == "ready";
}

asio::awaitable<void> GroupChanges::measure_pairs(std::shared_ptr<Change> change, std::vector<Worker> members) {
  pairs_.memory().keep_only(state_.membership());
  std::function<bool()> const is_wanted = [this, change] { return may_measure(*change); };
  co_await pairs_.measure(std::move(members), is_wanted);
}

Standing GroupChanges::standing_of(std::vector<Worker> const& members, api::GroupRequest const& request) const {
  Standing standing;
  for (auto const& worker : members) standing.localities.push_back(worker.locality);
  standing.gpus = ways_of_gpus(members);
  if (is_measured(request)) standing.pairs = std::make_shared<PairLinks const>(pairs_.known(members));
  return standing;
}

void GroupChanges::remember_pairs(JournalGroup const& kept) {
  if (!kept.pairs) return;
  auto const& members = kept.group.members;
  for (auto const& pair : *kept.pairs)
    pairs_.memory().remember(end_of(members.at(pair.a)), end_of(members.at(pair.b)),
                             {pair.latency_s, pair.bytes_per_s});
}

bool GroupChanges::needs_mending(api::Group const& group, std::uint32_t broken_epoch) const {
  if (!may_shrink(group.requested)) return false;
  if (group.epoch == broken_epoch) return true;
  auto const wanted = group.requested.workers ? group.requested.workers->size() : *group.requested.size;
  if (group.state == "ready" && group.members.size() == wanted) return false;
  auto const members = pick_members(group.requested, state_.membership(), &group);
  return members.has_value() && !(group.state == "ready" && has_members(group, members.value()));
}

void GroupChanges::mend_all() {
  if (state_.is_draining()) return;
  std::vector<std::string> names;
  for (auto const& [name, group] : state_.groups().all())
    if (!mending_.contains(name) && needs_mending(*group, 0)) names.push_back(name);
  for (auto const& name : names) mend(name, 0);
}

// Members report a failed call once, and a process that ends now, or is draining, makes no epoch.
void GroupChanges::remember_failure(std::string const& name, std::uint32_t epoch) {
  auto const group = state_.groups().find(name);
  if (group.has_error() || group.value()->epoch != epoch || !may_shrink(group.value()->requested)) return;
  if (!state_.groups().draw_ahead(name)) return;
  state_.keep_epoch(name);
  tools_.journal.hurry();
}

void GroupChanges::resume() {
  for (auto const& [name, group] : state_.groups().all())
    if (may_shrink(group->requested) && state_.groups().is_left(*group)) mend(name, group->epoch);
}

void GroupChanges::mend(std::string const& name, std::uint32_t broken_epoch) {
  auto const change = std::make_shared<Change>(tools_.executor, name, api::GroupRequest());
  change->mends = true;
  change->broken_epoch = broken_epoch;
  if (broken_epoch == 0) mending_.insert(name);
  changes_.spawn("mending group " + name, change_group(change));
}

}  // namespace chorus::coordinator
