// Handles suspected and lost workers: they are probed, their groups are degraded, and groups that may shrink are made
// again from the ready workers.
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/logging/log.hpp"
#include "http/wire/errc.hpp"
#include "server/coordinator/cluster/cluster.hpp"
#include "server/coordinator/cluster/cluster_change.hpp"
#include "server/coordinator/text/identifier.hpp"

namespace chorus::coordinator {

namespace asio = boost::asio;
using Clock = std::chrono::steady_clock;

// Probes with a waiting task.
struct Cluster::Looks {
  explicit Looks(asio::any_io_executor executor) : changed(std::move(executor)) {}
  std::size_t pending = 0;
  http::Condition changed;
};

void Cluster::lose(Worker const& worker, std::string const& why, bool has_ended) {
  logging::warn(tools_.log, "worker.lost", "worker " + worker.id + " lost: " + on_one_line(why),
                {{"worker", worker.id}, {"incarnation", api::to_hex(worker.incarnation)}});
  keep_worker(worker.id);
  tell_of(worker, "worker.lost", why);
  degrade_groups_of(worker, "is lost");
  count_members();
  mend_groups();
  if (listeners_.lost) listeners_.lost(worker.id, api::to_hex(worker.incarnation), why);
  if (has_ended && listeners_.ended) listeners_.ended(worker.id, api::to_hex(worker.incarnation));
}

void Cluster::degrade_groups_of(Worker const& worker, char const* why) {
  for (auto const& name : groups_.worker_lost(worker.id, worker.incarnation)) {
    logging::warn(tools_.log, "group.degraded", "group " + name + " degraded: worker " + worker.id + " " + why,
                  {{"group", name}, {"worker", worker.id}});
    keep_group(name);
    tell_of(*groups_.find(name).value(), "group.degraded", "worker " + worker.id + " " + why);
  }
  pairs_.look_again();
}

bool Cluster::needs_mending(api::Group const& group, std::uint32_t broken_epoch) const {
  if (!may_shrink(group.requested)) return false;
  if (group.epoch == broken_epoch) return true;
  auto const wanted = group.requested.workers ? group.requested.workers->size() : *group.requested.size;
  if (group.state == "ready" && group.members.size() == wanted) return false;
  auto const members = pick_members(group.requested, membership_, &group);
  return members.has_value() && !(group.state == "ready" && has_members(group, members.value()));
}

void Cluster::mend_groups() {
  if (stopping_) return;
  std::vector<std::string> names;
  for (auto const& [name, group] : groups_.all())
    if (!mending_.contains(name) && needs_mending(*group, 0)) names.push_back(name);
  for (auto const& name : names) mend(name, 0);
}

void Cluster::mend(std::string const& name, std::uint32_t broken_epoch) {
  auto const change = std::make_shared<Change>(tools_.executor, name, api::GroupRequest());
  change->mends = true;
  change->broken_epoch = broken_epoch;
  if (broken_epoch == 0) mending_.insert(name);
  changes_.spawn("mending group " + name, change_group(change));
}

asio::awaitable<void> Cluster::look_at_member(Worker worker, std::shared_ptr<Looks> looks) {
  co_await look_after(std::move(worker));
  --looks->pending;
  looks->changed.notify_all();
}

asio::awaitable<void> Cluster::look_into(api::Trouble trouble) {
  // Probes all members: the accused may only have passed on the failure of a third, and an epoch with a dead member is
  // unusable.
  auto const looks = std::make_shared<Looks>(tools_.executor);
  auto const look_at = [&](std::string const& id, std::string const& incarnation) {
    auto const* worker = membership_.find(id);
    if (worker == nullptr || !worker->ready || api::to_hex(worker->incarnation) != incarnation) return;
    ++looks->pending;
    changes_.spawn("look at " + id, look_at_member(*worker, looks));
  };
  auto const before = groups_.find(trouble.group);
  if (before.has_value() && before.value()->epoch == trouble.epoch)
    for (auto const& member : before.value()->members) look_at(member.worker, member.incarnation);
  else
    for (auto const& accused : trouble.accused) look_at(accused.worker, accused.incarnation);
  while (looks->pending > 0) co_await looks->changed.wait_until(TimePoint::max());
  auto const group = groups_.find(trouble.group);
  if (stopping_ || group.has_error() || !may_shrink(group.value()->requested)) co_return;
  if (group.value()->epoch == trouble.epoch) mend(trouble.group, trouble.epoch);
}

void Cluster::suspect(std::string const& id, std::string const& incarnation) {
  auto const* worker = membership_.find(id);
  if (stopping_ || worker == nullptr || api::to_hex(worker->incarnation) != incarnation) return;
  if (worker->ready)
    changes_.spawn("look after " + id, look_after(*worker));
  else if (looking_whether_ended_.insert(id).second)
    changes_.spawn("look whether " + id + " has ended", look_whether_ended(*worker));
}

// For a worker that is lost because it was silent: it may still be alive.
asio::awaitable<void> Cluster::look_whether_ended(Worker worker) {
  auto const reached = co_await tools_.workers.probe(worker.url, Clock::now() + patience_.suspicion);
  looking_whether_ended_.erase(worker.id);
  auto const* present = membership_.find(worker.id);
  if (present == nullptr || present->ready || present->incarnation != worker.incarnation) co_return;
  if (reached.has_error() && reached.error().code == http::HttpErrc::connect_failed && listeners_.ended)
    listeners_.ended(worker.id, api::to_hex(worker.incarnation));
}

std::set<std::string, std::less<>> Cluster::cut_off(TimePoint now) const {
  auto const silent = membership_.silent(now);
  if (silent.size() < 2) return {};
  if (2 * silent.size() > membership_.ready_count()) return silent;
  std::set<std::string, std::less<>> spared;
  for (auto const& [name, group] : groups_.all()) {
    std::vector<std::string> quiet;
    std::size_t present = 0;
    for (auto const& member : group->members) {
      auto const* worker = membership_.find(member.worker);
      if (worker == nullptr || !worker->ready || api::to_hex(worker->incarnation) != member.incarnation) continue;
      ++present;
      if (silent.contains(member.worker)) quiet.push_back(member.worker);
    }
    if (quiet.size() > 1 && 2 * quiet.size() > present) spared.insert(quiet.begin(), quiet.end());
  }
  return spared;
}

asio::awaitable<void> Cluster::look_after(Worker worker) {
  auto const deadline = Clock::now() + patience_.suspicion;
  asio::steady_timer timer(tools_.executor);
  for (;;) {
    auto const reached = co_await tools_.workers.probe(worker.url, deadline);
    if (reached.has_value()) co_return;
    auto const& why = reached.error();
    if (why.code == http::HttpErrc::connect_failed) {
      if (membership_.mark_lost(worker.id, worker.incarnation)) lose(worker, why.detail, true);
      co_return;
    }
    // A process that is being ended closes its links before its port: it accepts the connection, and drops it.
    if (why.code == http::HttpErrc::timed_out || Clock::now() >= deadline) co_return;
    timer.expires_after(std::chrono::milliseconds(1));
    co_await timer.async_wait(asio::as_tuple(asio::use_awaitable));
  }
}

}  // namespace chorus::coordinator
