// How a worker's groups come and go: made, joined and deleted by the program.
#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_future.hpp>
#include <future>

#include "http/json/json.hpp"
#include "worker/api/core/core.hpp"
#include "worker/api/core/group_requests.hpp"
#include "worker/api/errc.hpp"
#include "worker/service/surroundings.hpp"

namespace chorus::embedded {
namespace {

using std::chrono::milliseconds;

// Pauses between attempts double from the shortest to the longest.
constexpr milliseconds shortest_pause{5}, longest_pause{200};

Error without_coordinator() {
  return {WorkerErrc::no_coordinator, "this worker was started without a coordinator: nobody makes groups"};
}

bool is_wanted(service::Assignment const& assignment, GroupOptions const* wanted) {
  if (wanted == nullptr || wanted->workers.empty()) return true;
  auto const is_at = [](engine::Peer const& peer, std::string const& id) { return peer.worker == id; };
  auto const& members = assignment.members;
  auto const& ids = wanted->workers;
  if (wanted->order.empty() || wanted->order == "listed")
    return std::equal(members.begin(), members.end(), ids.begin(), ids.end(), is_at);
  return members.size() == ids.size() && std::all_of(members.begin(), members.end(), [&](engine::Peer const& peer) {
           return std::find(ids.begin(), ids.end(), peer.worker) != ids.end();
         });
}

std::string members_of(service::Assignment const& assignment) {
  std::string text;
  for (auto const& peer : assignment.members) text += (text.empty() ? "" : ", ") + peer.worker;
  return text;
}

}  // namespace

Result<std::shared_ptr<Member>> Core::join(std::string const& group, TimePoint deadline) {
  return join(group, deadline, nullptr);
}

Result<std::shared_ptr<Member>> Core::join(std::string const& group, TimePoint deadline, GroupOptions const* wanted) {
  if (auto const named = check_name(group); named.has_error()) return named.error();
  if (!has_coordinator_) return without_coordinator();
  std::vector<std::shared_ptr<Member>> former;  // outlive the lock: their ends may take a moment
  std::unique_lock lock(mutex_);
  for (;;) {
    if (ended_) return *ended_;
    if (auto const found = groups_.find(group);
        found != groups_.end() && found->second.assignment && is_wanted(*found->second.assignment, wanted)) {
      auto& [assignment, member] = found->second;
      bool const is_new = !member || member->epoch() != assignment->group.epoch;
      if (is_new && assignment->group.lost.empty()) {
        former.push_back(std::move(member));
        member = std::make_shared<Member>(machinery(), *assignment);
      }
      if (member && member->epoch() == assignment->group.epoch && !member->is_over()) return member;
    }
    if (std::chrono::steady_clock::now() >= deadline) break;
    changed_.wait_until(lock, deadline);
  }
  lock.unlock();
  return why_not(group, wanted);
}

std::optional<std::string> Core::unready() {
  std::promise<std::optional<std::string>> answer;
  boost::asio::post(control_, [this, &answer] { answer.set_value(service_.unready()); });
  return answer.get_future().get();
}

Error Core::why_not(std::string const& group, GroupOptions const* wanted) {
  if (auto const why = unready()) return {WorkerErrc::no_coordinator, *why};
  std::lock_guard const lock(mutex_);
  if (ended_) return *ended_;
  auto const found = groups_.find(group);
  if (found == groups_.end() || !found->second.assignment)
    return {WorkerErrc::not_assigned,
            "nobody has made a group " + group + " with " + identity().id + " in it until the deadline"};
  auto const& [assignment, member] = found->second;
  if (!is_wanted(*assignment, wanted))
    return {WorkerErrc::not_assigned, "group " + group + " has other members: " + members_of(*assignment)};
  auto text = "epoch " + std::to_string(assignment->group.epoch) + " of group " + group;
  if (member && member->is_over())
    text += " has failed (" + member->why_over() + ")";
  else
    text += " has lost members";
  return {WorkerErrc::no_new_epoch, text + ", and there was no newer one until the deadline"};
}

Result<std::shared_ptr<Member>> Core::create(std::string const& group, GroupOptions const& options,
                                             TimePoint deadline) {
  auto const& self = identity().id;
  if (auto const checked = check_group(group, options, self); checked.has_error()) return checked.error();
  if (!has_coordinator_) return without_coordinator();
  {
    std::lock_guard const lock(mutex_);
    auto const found = groups_.find(group);
    if (found != groups_.end() && found->second.member && !found->second.member->is_over())
      return Error(WorkerErrc::bad_argument, "this worker is a member of group " + group +
                                                 " already: join it, or delete it before it is made anew");
  }
  if (options.workers.empty() || options.workers.front() == self) {
    auto const key = ::chorus::api::to_hex(service::draw_incarnation());
    auto const answer = ask(to_make(service_.coordinator(), group, options, key), deadline);
    if (answer.has_error()) return answer.error();
    auto const made = http::decode<::chorus::api::Group>(*answer, http::UnknownFields::ignore);
    if (!made) return Error(WorkerErrc::no_coordinator, "the coordinator's answer is no group: " + made.error().detail);
    if (std::none_of(made->members.begin(), made->members.end(), [&](auto const& m) { return m.worker == self; }))
      return Error(WorkerErrc::not_assigned, "group " + group + " was made, and this worker, '" + self +
                                                 "', is not one of the " + std::to_string(options.size));
  }
  return join(group, deadline, &options);
}

Status Core::remove(std::string const& group, TimePoint deadline) {
  if (auto const named = check_name(group); named.has_error()) return named.error();
  if (!has_coordinator_) return without_coordinator();
  auto const answer = ask(to_delete(service_.coordinator(), group), deadline);
  if (answer.has_error()) return answer.error();
  return ok();
}

Result<std::string> Core::ask(http::Call const& call, TimePoint deadline) {
  auto pause = shortest_pause;
  std::optional<Error> refusal;  // the last one of the coordinator: it says more than a silence at the deadline
  for (;;) {
    std::unique_lock lock(mutex_);
    if (ended_) return *ended_;
    // Under the lock: stop() comes after, and the control thread runs until this attempt has ended.
    auto ending = boost::asio::co_spawn(control_, attempt(&service_.client(), call, deadline), boost::asio::use_future);
    lock.unlock();
    auto ended = ending.get();
    if (!ended.failure) return std::move(ended.body);
    if (!refusal || ended.failure->code != WorkerErrc::no_coordinator) refusal = ended.failure;
    if (!ended.may_succeed_later || std::chrono::steady_clock::now() + pause >= deadline) {
      lock.lock();
      return ended_ ? *ended_ : *refusal;
    }
    lock.lock();
    changed_.wait_for(lock, pause, [this] { return ended_.has_value(); });
    pause = std::min(2 * pause, longest_pause);
  }
}

}  // namespace chorus::embedded
