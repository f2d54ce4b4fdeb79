#include "worker/parameters/serving/followers.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace chorus::parameters {
namespace {

using Stage = Follower::Stage;

std::uint64_t backlog_bytes(Follower const& follower) {
  std::uint64_t bytes = 0;
  for (auto const& entry : follower.backlog)
    if (entry.push.data) bytes += entry.push.data->size_bytes();
  return bytes;
}

}  // namespace

std::vector<Followers::Ptr> Followers::place(http::PeerClient client, api::ShardAssignment const& assignment,
                                             std::string const& path, std::uint32_t epoch) {
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
    added.push_back(std::make_shared<Follower>(client, peer, FollowerAddress{peer.url + path, epoch}, first));
    followers.push_back(added.back());
    if (assignment.continues)
      added.back()->may_refuse_until = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  }
  for (auto const& follower : list_)
    if (std::ranges::find(followers, follower) == followers.end()) follower->is_dropped = true;
  list_ = std::move(followers);
  return added;
}

void Followers::drop() const {
  for (auto const& follower : list_) follower->is_dropped = true;
}

bool Followers::any_in_step() const {
  return std::ranges::any_of(list_, [](Ptr const& follower) { return follower->stage == Stage::in_step; });
}

bool Followers::any_is_wanting() const {
  return std::ranges::any_of(list_, [](Ptr const& follower) {
    return !follower->is_dropped && (follower->stage == Stage::wants_image || follower->stage == Stage::wants_step);
  });
}

std::size_t Followers::behind() const {
  auto const is_behind = [](Ptr const& follower) { return follower->stage != Stage::in_step; };
  return static_cast<std::size_t>(std::ranges::count_if(list_, is_behind));
}

bool Followers::backlog_is_long(std::uint64_t value_bytes) const {
  return std::ranges::any_of(list_, [&](Ptr const& follower) {
    return follower->stage == Stage::filling && !follower->backlog.empty() &&
           (follower->backlog.size() >= follower->backlog_limit ||
            backlog_bytes(*follower) > std::max<std::uint64_t>(2 * value_bytes, 16 << 20));
  });
}

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

}  // namespace chorus::parameters
