#include "server/coordinator/cluster/suspicions.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>
#include <vector>

#include "http/wire/errc.hpp"

namespace chorus::coordinator {

namespace asio = boost::asio;
using Clock = std::chrono::steady_clock;

std::set<std::string, std::less<>> cut_off(ClusterState const& state, TimePoint now) {
  auto const& membership = state.membership();
  auto const silent = membership.silent(now);
  if (silent.size() < 2) return {};
  if (2 * silent.size() > membership.ready_count()) return silent;
  std::set<std::string, std::less<>> spared;
  for (auto const& [name, group] : state.groups().all()) {
    std::vector<std::string> quiet;
    std::size_t present = 0;
    for (auto const& member : group->members) {
      auto const* worker = membership.find(member.worker);
      if (worker == nullptr || !worker->ready || api::to_hex(worker->incarnation) != member.incarnation) continue;
      ++present;
      if (silent.contains(member.worker)) quiet.push_back(member.worker);
    }
    if (quiet.size() > 1 && 2 * quiet.size() > present) spared.insert(quiet.begin(), quiet.end());
  }
  return spared;
}

// Probes with a waiting task.
struct Suspicions::Looks {
  explicit Looks(asio::any_io_executor executor) : changed(std::move(executor)) {}
  std::size_t pending = 0;
  http::Condition changed;
};

asio::awaitable<void> Suspicions::look_at_member(Worker worker, std::shared_ptr<Looks> looks) {
  co_await look_after(std::move(worker));
  --looks->pending;
  looks->changed.notify_all();
}

void Suspicions::look_into(api::Trouble const& trouble) {
  if (tools_.state.is_draining()) return;
  auto const [looking, is_new] = looking_at_.try_emplace({trouble.group, trouble.epoch});
  if (is_new)
    probes_.spawn("trouble in " + trouble.group, look_at_members(trouble));
  else
    looking->second = trouble;
}

asio::awaitable<void> Suspicions::look_at_members(api::Trouble trouble) {
  CallsOf const calls(trouble.group, trouble.epoch);
  for (auto next = std::optional(std::move(trouble)); next; next = std::exchange(looking_at_.at(calls), std::nullopt))
    co_await look_at_them(*next);
  looking_at_.erase(calls);
}

asio::awaitable<void> Suspicions::look_at_them(api::Trouble trouble) {
  // Probes all members: the accused may only have passed on the failure of a third, and an epoch with a dead member is
  // unusable.
  auto const looks = std::make_shared<Looks>(tools_.executor);
  auto const look_at = [&](std::string const& id, std::string const& incarnation) {
    auto const* worker = tools_.state.membership().find(id);
    if (worker == nullptr || !worker->ready || api::to_hex(worker->incarnation) != incarnation) return;
    ++looks->pending;
    probes_.spawn("look at " + id, look_at_member(*worker, looks));
  };
  auto const before = tools_.state.groups().find(trouble.group);
  if (before.has_value() && before.value()->epoch == trouble.epoch)
    for (auto const& member : before.value()->members) look_at(member.worker, member.incarnation);
  else
    for (auto const& accused : trouble.accused) look_at(accused.worker, accused.incarnation);
  while (looks->pending > 0) co_await looks->changed.wait_until(TimePoint::max());
  auto const group = tools_.state.groups().find(trouble.group);
  if (tools_.state.is_draining() || group.has_error() || !may_shrink(group.value()->requested)) co_return;
  if (group.value()->epoch == trouble.epoch) verdicts_.broken(trouble.group, trouble.epoch);
}

void Suspicions::suspect(std::string const& id, std::string const& incarnation) {
  auto const* worker = tools_.state.membership().find(id);
  if (tools_.state.is_draining() || worker == nullptr || api::to_hex(worker->incarnation) != incarnation) return;
  if (worker->ready)
    probes_.spawn("look after " + id, look_after(*worker));
  else if (looking_whether_ended_.insert(id).second)
    probes_.spawn("look whether " + id + " has ended", look_whether_ended(*worker));
}

// For a worker that is lost because it was silent: it may still be alive.
asio::awaitable<void> Suspicions::look_whether_ended(Worker worker) {
  auto const reached = co_await tools_.workers.probe(worker.url, Clock::now() + patience_);
  looking_whether_ended_.erase(worker.id);
  auto const* present = tools_.state.membership().find(worker.id);
  if (present == nullptr || present->ready || present->incarnation != worker.incarnation) co_return;
  if (reached.has_error() && reached.error().code == http::HttpErrc::connect_failed) verdicts_.ended(worker);
}

asio::awaitable<void> Suspicions::look_after(Worker worker) {
  auto const deadline = Clock::now() + patience_;
  asio::steady_timer timer(tools_.executor);
  for (;;) {
    auto const reached = co_await tools_.workers.probe(worker.url, deadline);
    if (reached.has_value()) co_return;
    auto const& why = reached.error();
    if (why.code == http::HttpErrc::connect_failed) {
      if (tools_.state.membership().mark_lost(worker.id, worker.incarnation)) verdicts_.lost(worker, why.detail);
      co_return;
    }
    // A process that is being ended closes its links before its port: it accepts the connection, and drops it.
    if (why.code == http::HttpErrc::timed_out || Clock::now() >= deadline) co_return;
    timer.expires_after(std::chrono::milliseconds(1));
    co_await timer.async_wait(asio::as_tuple(asio::use_awaitable));
  }
}

}  // namespace chorus::coordinator
