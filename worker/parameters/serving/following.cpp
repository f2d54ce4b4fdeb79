// Both sides of keeping backups: what an owner does for them while it goes on, and how a backup takes it.
#include <algorithm>
#include <boost/asio/use_awaitable.hpp>
#include <cstring>

#include "worker/parameters/serving/shard_host.hpp"

namespace chorus::parameters {
namespace {

namespace asio = boost::asio;
using http::Problem;
using http::ProblemCode;
using std::chrono::steady_clock;

constexpr std::chrono::seconds step_patience{5};
constexpr std::size_t longest_backlog = 1024;

std::uint64_t backlog_bytes(Follower const& follower) {
  std::uint64_t bytes = 0;
  for (auto const& entry : follower.backlog)
    if (entry.push.data) bytes += entry.push.data->size_bytes();
  return bytes;
}

// As long as somebody waits, also when its coroutine is cancelled.
class Waiting {
 public:
  Waiting(std::size_t& count, http::Condition& changed) : count_(count), changed_(changed) { ++count_; }
  ~Waiting() {
    --count_;
    changed_.notify_all();
  }
  Waiting(Waiting const&) = delete;
  Waiting& operator=(Waiting const&) = delete;

 private:
  std::size_t& count_;
  http::Condition& changed_;
};

}  // namespace

// Between two pushes: images are taken here, and here a backup comes into step, so that no push falls in between.
asio::awaitable<void> ShardHost::look_after_followers() {
  auto const present = followers_;
  for (auto const& follower : present) {
    if (follower->is_dropped) continue;
    if (follower->stage == Follower::Stage::wants_image) {
      auto image = co_await take_image();
      if (follower->is_dropped) continue;
      if (!image) {
        co_await pause(std::chrono::milliseconds(50));
        continue;
      }
      follower->backlog.clear();
      follower->image = std::make_shared<ShardImage const>(std::move(*image));
      follower->stage = Follower::Stage::filling;
      changed_.notify_all();
    } else if (follower->stage == Follower::Stage::wants_step) {
      auto sent = Follower::Sent::taken;
      while (sent == Follower::Sent::taken && !follower->backlog.empty()) {
        auto const entry = follower->backlog.front();
        sent = co_await follower->send(entry, steady_clock::now() + step_patience);
        if (sent == Follower::Sent::taken) follower->backlog.pop_front();
      }
      if (sent == Follower::Sent::taken)
        sent = co_await follower->complete(shard_->position(), steady_clock::now() + step_patience);
      if (sent == Follower::Sent::refused && steady_clock::now() < follower->may_refuse_until) {
        co_await pause(std::chrono::milliseconds(2));
        continue;
      }
      follower->stage = sent == Follower::Sent::taken ? Follower::Stage::in_step : Follower::Stage::filling;
      changed_.notify_all();
    }
  }
}

// Until the follower is in step, or another placement does not know it any more.
asio::awaitable<void> ShardHost::fill(FollowerPtr follower) {
  constexpr std::chrono::milliseconds before_repeating{100};
  while (follower->stage == Follower::Stage::wants_step && !follower->is_dropped && !closed_)
    co_await changed_.wait_until(http::TimePoint::max());
  if (follower->stage == Follower::Stage::in_step) co_return;
  while (!follower->is_dropped && !closed_) {
    follower->stage = Follower::Stage::wants_image;
    changed_.notify_all();
    while (follower->stage == Follower::Stage::wants_image && !follower->is_dropped)
      co_await changed_.wait_until(http::TimePoint::max());
    if (follower->is_dropped) co_return;
    auto const image = std::exchange(follower->image, nullptr);
    auto sent = co_await follower->send_image(image, tools_.fill_bytes_per_second);
    // Only a few are left to the moment in which nothing else is pushed.
    while (sent == Follower::Sent::taken && follower->backlog.size() > 4 && !follower->is_dropped) {
      auto const entry = follower->backlog.front();
      sent = co_await follower->send(entry, steady_clock::now() + step_patience);
      if (sent == Follower::Sent::taken) follower->backlog.pop_front();
      changed_.notify_all();
    }
    if (sent == Follower::Sent::taken) {
      follower->stage = Follower::Stage::wants_step;
      changed_.notify_all();
      while (follower->stage == Follower::Stage::wants_step && !follower->is_dropped)
        co_await changed_.wait_until(http::TimePoint::max());
      if (follower->stage == Follower::Stage::in_step) co_return;
    }
    follower->stage = Follower::Stage::unfit;
    follower->backlog.clear();
    if (tools_.events.unreachable && !follower->is_dropped)
      tools_.events.unreachable(follower->peer().worker, follower->peer().incarnation);
    co_await pause(before_repeating);
  }
}

asio::awaitable<http::Checked<ShardImage>> ShardHost::image(http::TimePoint deadline) {
  auto const self = shared_from_this();
  Waiting const waiting(images_wanted_, changed_);
  while (is_working_ && !closed_ && steady_clock::now() < deadline) co_await changed_.wait_until(deadline);
  if (closed_) co_return *closed_;
  if (role_ != Role::owner) co_return misdirected();
  if (is_working_) co_return Problem(ProblemCode::deadline_exceeded, title() + " is applying a push");
  auto taken = co_await take_image();
  if (!taken) co_return Problem(ProblemCode::unavailable, taken.error().detail);
  co_return std::move(*taken);
}

std::size_t ShardHost::backups_behind() const {
  auto const behind = [](FollowerPtr const& follower) { return follower->stage != Follower::Stage::in_step; };
  return static_cast<std::size_t>(std::ranges::count_if(followers_, behind));
}

bool ShardHost::backlog_is_long() const {
  return std::ranges::any_of(followers_, [this](FollowerPtr const& follower) {
    return follower->stage == Follower::Stage::filling && !follower->backlog.empty() &&
           (follower->backlog.size() > longest_backlog ||
            backlog_bytes(*follower) > std::max<std::uint64_t>(2 * value_bytes(), 16 << 20));
  });
}

std::optional<Problem> ShardHost::not_following(std::uint32_t epoch) {
  if (closed_) return *closed_;
  if (epoch == epoch_ && role_ == Role::backup) return std::nullopt;
  if (epoch > epoch_)
    return Problem(ProblemCode::unavailable,
                   title() + " has not been placed here in epoch " + std::to_string(epoch) + " yet");
  return Problem(ProblemCode::epoch_fenced, "epoch " + std::to_string(epoch) + " of " + title() +
                                                " is over: " + std::to_string(epoch_) + " has begun");
}

asio::awaitable<std::optional<Problem>> ShardHost::follow(Push push, std::uint64_t position, std::uint32_t epoch,
                                                          http::TimePoint deadline) {
  auto const self = shared_from_this();
  if (auto problem = not_following(epoch)) co_return problem;
  if (broken_) co_return *broken_;
  if (push.kind != PushKind::clients)
    if (auto problem = shard_->refuse(push)) co_return problem;
  auto const job = std::make_shared<Job>();
  job->push = std::move(push);
  job->position = position;
  enqueue(job);
  co_await until_done(job, deadline);
  if (!job->answer) co_return Problem(ProblemCode::deadline_exceeded, title() + ": the push has not ended");
  if (!*job->answer) co_return job->answer->error();
  co_return std::nullopt;
}

std::optional<Problem> ShardHost::put_piece(Piece const& piece, std::span<std::byte const> content,
                                            std::uint32_t epoch) {
  if (auto problem = not_following(epoch)) return problem;
  if (piece.image != arriving_image_) {
    if (is_working_ || uses_device_) return Problem(ProblemCode::unavailable, title() + " is applying a push");
    // A shard that was never used: state that is not in the image is as at the beginning.
    auto fresh = Shard::make(spec_, tools_.memory(), Shard::Content::to_come);
    if (!fresh) return why_not_made(fresh.error());
    shard_ = std::move(*fresh);
    arriving_image_ = piece.image;
    is_complete_ = false;
    has_image_ = false;
  }
  auto const whole = shard_->place_for(piece.array, piece.bytes);
  if (whole.size() != piece.bytes || piece.offset > whole.size() || content.size() > whole.size() - piece.offset)
    return Problem(ProblemCode::mismatch, title() + " has no array " + piece.array.substr(0, 80) + " of " +
                                              std::to_string(piece.bytes) + " bytes");
  if (!content.empty()) std::memcpy(whole.data() + piece.offset, content.data(), content.size());
  return std::nullopt;
}

std::optional<Problem> ShardHost::complete(std::uint64_t position, std::uint32_t epoch) {
  if (auto problem = not_following(epoch)) return problem;
  if (arriving_image_ != 0 || broken_ || position != shard_->position() || is_working_ || !(is_complete_ || has_image_))
    return Problem(ProblemCode::out_of_order,
                   title() + " is at position " + std::to_string(shard_->position()) + " here");
  is_complete_ = true;
  return std::nullopt;
}

}  // namespace chorus::parameters
