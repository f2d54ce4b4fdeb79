#include "worker/parameters/serving/replication/followers.hpp"

#include <algorithm>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <utility>

#include "base/runtime/pause.hpp"

namespace chorus::parameters {
namespace {

namespace asio = boost::asio;
using Stage = Follower::Stage;
using Sent = Follower::Sent;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::chrono::seconds patience{5};
constexpr std::size_t longest_backlog = 1024;
constexpr std::size_t last_of_backlog = 4;  // entries that are sent between two pushes

std::uint64_t backlog_bytes(Follower const& follower) {
  std::uint64_t bytes = 0;
  for (auto const& entry : follower.backlog)
    if (entry.push.data) bytes += entry.push.data->size_bytes();
  return bytes;
}

}  // namespace

void Followers::place(api::ShardAssignment const& assignment) {
  auto const added = replace(assignment);
  if (!assignment.fresh)
    for (auto const& follower : added) tasks_.spawn(tenure_.title() + " to " + follower->peer().worker, fill(follower));
  copy_.changed().notify_all();
}

// Returns the new ones.
std::vector<Followers::Ptr> Followers::replace(api::ShardAssignment const& assignment) {
  auto const& spec = copy_.spec();
  auto const path = api::parameter_path(spec.parameter) + "/shards/" + std::to_string(spec.index);
  auto const epoch = tenure_.epoch();
  List followers;
  std::vector<Ptr> added;
  for (auto const& peer : assignment.backups) {
    auto const same = [&](Ptr const& follower) {
      return follower->peer().worker == peer.worker && follower->peer().incarnation == peer.incarnation;
    };
    auto const found = std::ranges::find_if(list_, same);
    if (assignment.continues && found != list_.end()) {
      (*found)->set_epoch(epoch);
      (*found)->sent_position.reset();  // that push may not have been applied here
      followers.push_back(*found);
      continue;
    }
    // A backup of the former owner may have the same position: it is asked, and filled only if it has not.
    auto const first = assignment.continues ? Stage::wants_step : Stage::wants_image;
    added.push_back(std::make_shared<Follower>(tools_.client, peer, FollowerAddress{peer.url + path, epoch}, first));
    followers.push_back(added.back());
    if (assignment.continues) added.back()->may_refuse_until = steady_clock::now() + std::chrono::seconds(2);
  }
  for (auto const& follower : list_)
    if (std::ranges::find(followers, follower) == followers.end()) follower->is_dropped = true;
  list_ = std::move(followers);
  return added;
}

void Followers::start_in_step() {
  for (auto const& follower : list_) follower->stage = Stage::in_step;
}

void Followers::drop() const {
  for (auto const& follower : list_) follower->is_dropped = true;
}

void Followers::clear() {
  drop();
  list_.clear();
}

asio::awaitable<bool> Followers::send(LogEntry entry) {
  constexpr milliseconds before_repeating{20};
  auto const role = tenure_.role();
  while (!tenure_.is_closed() && tenure_.role() == role) {
    // Looked up again, because the placement may have changed during the last wait.
    auto const follower = in_step_without(entry.position);
    if (!follower) co_return true;
    auto const epoch = tenure_.epoch();
    auto const sent = co_await follower->send(entry, steady_clock::now() + patience);
    if (sent == Sent::taken) {
      follower->sent_position = entry.position;
      continue;
    }
    // The backup may have heard of this owner's next epoch before the push arrived.
    if (sent == Sent::fenced && epoch != tenure_.epoch()) continue;
    // Either another worker owns the shard, or this one does in an epoch of which it has not heard yet. Until it hears,
    // it keeps its copy, which may be the only one.
    if (sent == Sent::fenced && !follower->is_dropped) {
      tenure_.fence();
      co_return false;
    }
    if (follower->is_dropped) continue;
    report(*follower);
    co_await http::pause(before_repeating);
  }
  co_return false;
}

// Returns a backup in step that has not taken the push at this position; null if all have.
Followers::Ptr Followers::in_step_without(std::uint64_t position) const {
  auto const found = std::ranges::find_if(list_, [&](Ptr const& follower) {
    return follower->stage == Stage::in_step && follower->sent_position != position;
  });
  return found == list_.end() ? nullptr : *found;
}

void Followers::add_to_backlogs(LogEntry const& entry) const {
  for (auto const& follower : list_)
    if (follower->stage == Stage::filling || follower->stage == Stage::wants_step) follower->backlog.push_back(entry);
}

asio::awaitable<void> Followers::look_after() {
  auto const present = list_;
  for (auto const& follower : present) {
    if (follower->is_dropped) continue;
    if (follower->stage == Stage::wants_image)
      co_await give_image(follower);
    else if (follower->stage == Stage::wants_step)
      co_await bring_into_step(follower);
  }
}

asio::awaitable<void> Followers::give_image(Ptr follower) {
  auto image = co_await copy_.image();
  if (follower->is_dropped) co_return;
  if (!image) {
    co_await http::pause(milliseconds(50));
    co_return;
  }
  follower->backlog.clear();
  follower->backlog_limit = longest_backlog;
  follower->image = std::make_shared<ShardImage const>(std::move(*image));
  follower->stage = Stage::filling;
  copy_.changed().notify_all();
}

asio::awaitable<void> Followers::bring_into_step(Ptr follower) {
  auto sent = Sent::taken;
  while (sent == Sent::taken && !follower->backlog.empty()) {
    auto const entry = follower->backlog.front();
    sent = co_await follower->send(entry, steady_clock::now() + patience);
    if (sent == Sent::taken) follower->backlog.pop_front();
  }
  if (sent == Sent::taken)
    sent = co_await follower->complete(copy_.shard().position(), copy_.history().now(), steady_clock::now() + patience);
  if (sent == Sent::refused && steady_clock::now() < follower->may_refuse_until) {
    co_await http::pause(milliseconds(2));
    co_return;
  }
  follower->stage = sent == Sent::taken ? Stage::in_step : Stage::filling;
  copy_.changed().notify_all();
}

// Fills a backup until it is in step, or until a newer placement drops it.
asio::awaitable<void> Followers::fill(Ptr follower) {
  constexpr milliseconds before_repeating{100};
  auto& changed = copy_.changed();
  while (follower->stage == Stage::wants_step && !follower->is_dropped && !tenure_.is_closed())
    co_await changed.wait_until(http::TimePoint::max());
  if (follower->stage == Stage::in_step) co_return;
  while (!follower->is_dropped && !tenure_.is_closed()) {
    follower->stage = Stage::wants_image;
    changed.notify_all();
    while (follower->stage == Stage::wants_image && !follower->is_dropped)
      co_await changed.wait_until(http::TimePoint::max());
    if (follower->is_dropped) co_return;
    auto const image = std::exchange(follower->image, nullptr);
    auto sent = co_await follower->send_image(image, tools_.fill_bytes_per_second);
    if (sent == Sent::taken) sent = co_await catch_up(follower);
    if (sent == Sent::taken) {
      follower->stage = Stage::wants_step;
      changed.notify_all();
      while (follower->stage == Stage::wants_step && !follower->is_dropped)
        co_await changed.wait_until(http::TimePoint::max());
      if (follower->stage == Stage::in_step) co_return;
    }
    follower->stage = Stage::unfit;
    follower->backlog.clear();
    if (!follower->is_dropped) report(*follower);
    co_await http::pause(before_repeating);
  }
}

// Sends the backlog. Its limit falls by one for every two entries sent, so that it ends however fast clients push.
asio::awaitable<Sent> Followers::catch_up(Ptr follower) {
  auto sent = Sent::taken;
  follower->backlog_limit = std::min(follower->backlog_limit, follower->backlog.size());
  for (auto makes_room = true; follower->backlog.size() > last_of_backlog && !follower->is_dropped;) {
    auto const entry = follower->backlog.front();
    sent = co_await follower->send(entry, steady_clock::now() + patience);
    if (sent != Sent::taken) break;
    follower->backlog.pop_front();
    if (!std::exchange(makes_room, !makes_room)) --follower->backlog_limit;
    copy_.changed().notify_all();
  }
  co_return sent;
}

void Followers::report(Follower const& follower) const {
  if (tools_.events.unreachable) tools_.events.unreachable(follower.peer().worker, follower.peer().incarnation);
}

bool Followers::any_in_step() const {
  return std::ranges::any_of(list_, [](Ptr const& follower) { return follower->stage == Stage::in_step; });
}

bool Followers::any_is_wanting() const {
  return std::ranges::any_of(list_, [](Ptr const& follower) {
    return !follower->is_dropped && (follower->stage == Stage::wants_image || follower->stage == Stage::wants_step);
  });
}

bool Followers::backlog_is_long() const {
  auto const most_bytes = std::max<std::uint64_t>(2 * copy_.shard().value_bytes(), 16 << 20);
  return std::ranges::any_of(list_, [&](Ptr const& follower) {
    return follower->stage == Stage::filling && !follower->backlog.empty() &&
           (follower->backlog.size() >= follower->backlog_limit || backlog_bytes(*follower) > most_bytes);
  });
}

std::size_t Followers::behind() const { return list_.size() - in_step().size(); }

std::vector<std::string> Followers::in_step() const {
  std::vector<std::string> workers;
  for (auto const& follower : list_)
    if (follower->stage == Stage::in_step) workers.push_back(follower->peer().worker);
  return workers;
}

}  // namespace chorus::parameters
