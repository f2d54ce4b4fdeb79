// ShardHost's part for backups: how an owner fills them and brings them into step, and how a backup applies pushes and
// images.
#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

#include "worker/parameters/serving/shard_host.hpp"

namespace chorus::parameters {
namespace {

namespace asio = boost::asio;
using http::Problem;
using http::ProblemCode;
using std::chrono::steady_clock;

constexpr std::chrono::seconds step_patience{5};
constexpr std::size_t longest_backlog = 1024;
constexpr std::size_t last_of_backlog = 4;  // entries that are sent between two pushes

// Counts a waiting coroutine while it exists, also if the coroutine is cancelled.
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

// Called between two pushes: takes images and brings backups into step, so that no push is missed.
asio::awaitable<void> ShardHost::look_after_followers() {
  auto const present = followers_.list();
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
      follower->backlog_limit = longest_backlog;
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
        sent = co_await follower->complete(shard_->position(), history_.now(), steady_clock::now() + step_patience);
      if (sent == Follower::Sent::refused && steady_clock::now() < follower->may_refuse_until) {
        co_await pause(std::chrono::milliseconds(2));
        continue;
      }
      follower->stage = sent == Follower::Sent::taken ? Follower::Stage::in_step : Follower::Stage::filling;
      changed_.notify_all();
    }
  }
}

// Sends the backlog. Its limit falls by one for every two entries sent, so that it ends however fast clients push.
asio::awaitable<Follower::Sent> ShardHost::catch_up(FollowerPtr follower) {
  auto sent = Follower::Sent::taken;
  follower->backlog_limit = std::min(follower->backlog_limit, follower->backlog.size());
  for (auto makes_room = true; follower->backlog.size() > last_of_backlog && !follower->is_dropped;) {
    auto const entry = follower->backlog.front();
    sent = co_await follower->send(entry, steady_clock::now() + step_patience);
    if (sent != Follower::Sent::taken) break;
    follower->backlog.pop_front();
    if (!std::exchange(makes_room, !makes_room)) --follower->backlog_limit;
    changed_.notify_all();
  }
  co_return sent;
}

// Fills a backup until it is in step, or until a newer placement drops it.
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
    if (sent == Follower::Sent::taken) sent = co_await catch_up(follower);
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

// Called between two pushes.
asio::awaitable<Result<ShardImage>> ShardHost::take_image() {
  auto image = co_await offload_.image();
  if (!image && shard_->gpu() != nullptr) (void)heed(image.error());
  if (image) image->history = history_.now();
  co_return image;
}

asio::awaitable<http::Checked<ShardImage>> ShardHost::image(http::TimePoint deadline) {
  auto const self = shared_from_this();
  Waiting const waiting(images_wanted_, changed_);
  while (is_working_ && !closed_ && steady_clock::now() < deadline) co_await changed_.wait_until(deadline);
  if (closed_) co_return *closed_;
  if (!serves()) co_return misdirected();
  if (is_working_) co_return Problem(ProblemCode::deadline_exceeded, title() + " is applying a push");
  auto taken = co_await take_image();
  if (!taken) co_return Problem(ProblemCode::unavailable, taken.error().detail);
  co_return std::move(*taken);
}

// Copies many rows on another thread, while no push creates or changes rows.
asio::awaitable<http::Checked<ShardHost::View>> ShardHost::copy_rows(ReadConstraints constraints,
                                                                     std::span<std::uint64_t const> rows,
                                                                     std::span<std::byte> into,
                                                                     http::TimePoint deadline) {
  auto const self = shared_from_this();
  auto seen = co_await view(constraints, deadline);
  if (!seen) co_return seen.error();
  if (into.size() <= ShardOffload::inline_bytes) {
    shard_->copy_rows(rows, into);
    co_return seen;
  }
  seen->values = nullptr;
  Waiting const waiting(images_wanted_, changed_);
  while ((is_working_ || offload_.is_lent()) && !closed_ && steady_clock::now() < deadline)
    co_await changed_.wait_until(deadline);
  if (is_working_ || offload_.is_lent())
    co_return Problem(ProblemCode::deadline_exceeded, title() + " is applying a push");
  // The version may have changed meanwhile.
  ReadConstraints const newest;
  seen = co_await view(newest, deadline);
  if (!seen) co_return seen.error();
  co_await offload_.copy_rows(rows, into);
  co_return seen;
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

asio::awaitable<std::optional<Problem>> ShardHost::follow(LogEntry entry, std::uint32_t epoch,
                                                          http::TimePoint deadline) {
  auto const self = shared_from_this();
  std::optional<Problem> misfit;
  if (entry.push.kind != PushKind::clients) misfit = co_await refused(entry.push);
  if (auto problem = not_following(epoch)) co_return problem;
  if (broken_) co_return *broken_;
  if (misfit) co_return misfit;
  is_unused_ = false;
  auto const job = std::make_shared<Job>();
  job->push = std::move(entry.push);
  job->position = entry.position;
  job->history = entry.history;
  job->epoch = epoch;
  enqueue(job);
  co_await until_done(job, deadline);
  if (!job->answer) co_return Problem(ProblemCode::deadline_exceeded, title() + ": the push has not ended");
  if (!*job->answer) co_return job->answer->error();
  co_return std::nullopt;
}

// Returns true if this push of the owner is the next one. Otherwise answers it: a push of a former epoch is fenced.
bool ShardHost::is_next_of_owner(Job& job) {
  auto const at = shard_->position();
  if (auto problem = not_following(job.epoch)) {
    finish(job, std::move(*problem));
  } else if (*job.position == at && history_.may_be_followed_by(job.history)) {
    return true;
  } else if (*job.position < at && (*job.position + 1 < at || history_.may_have_ended_with(job.push, job.history))) {
    finish(job, api::PushAnswer{});
  } else {
    finish(job, fall_out_of_step(*job.position > at ? "it has missed a push" : "it has taken other pushes"));
  }
  return false;
}

// Marks the backup as incomplete: it needs an image. Tells the coordinator, because the owner may wait for this backup.
Problem ShardHost::fall_out_of_step(std::string const& why) {
  Problem problem(ProblemCode::out_of_order,
                  title() + " is at position " + std::to_string(shard_->position()) + " here: " + why);
  has_image_ = false;
  if (std::exchange(is_complete_, false) && tools_.events.lost) tools_.events.lost(spec_.parameter, spec_.index, why);
  return problem;
}

asio::awaitable<std::optional<Problem>> ShardHost::put_piece(ImagePiece piece,
                                                             std::shared_ptr<tensors::Block const> content,
                                                             std::uint32_t epoch) {
  auto const self = shared_from_this();
  if (auto problem = not_following(epoch)) co_return problem;
  if (is_working_ || offload_.is_lent()) co_return Problem(ProblemCode::unavailable, title() + " is applying a push");
  Waiting const waiting(images_wanted_, changed_);  // no push begins
  if (piece.image != arriving_image_) {
    // A late piece of an image that was given up.
    if (piece.image <= newest_image_)
      co_return Problem(ProblemCode::out_of_order, "a later image of " + title() + " has come here");
    // The image needs an unused shard, because state that is not in the image must be initial.
    if (!std::exchange(is_unused_, false)) {
      auto fresh = co_await offload_.make_fresh(spec_, tools_.memory());
      if (auto problem = not_following(epoch)) co_return problem;
      if (!fresh) co_return why_not_made(fresh.error());
      asio::post(tools_.threads, [former = std::exchange(shard_, std::move(*fresh))] {});
    }
    arriving_image_ = newest_image_ = piece.image;
    is_complete_ = false;
    has_image_ = false;
  }
  auto const is_taken = co_await offload_.take(piece, content);
  if (is_taken) co_return std::nullopt;
  co_return Problem(ProblemCode::mismatch, title() + " has no array " + piece.array.substr(0, 80) + " of " +
                                               std::to_string(piece.bytes) + " bytes");
}

asio::awaitable<std::optional<Problem>> ShardHost::end_image(std::uint64_t image, api::ShardState state,
                                                             std::optional<std::uint64_t> history,
                                                             std::uint32_t epoch) {
  auto const self = shared_from_this();
  if (auto problem = not_following(epoch)) co_return problem;
  if (image == 0 || image != arriving_image_ || offload_.is_lent())
    co_return Problem(ProblemCode::out_of_order, "this image of " + title() + " has not begun here");
  auto const restored = co_await offload_.restore(std::move(state));
  if (!restored) co_return heed(restored.error());
  if (auto problem = not_following(epoch)) co_return problem;
  arriving_image_ = 0;
  if (!*restored) co_return Problem(ProblemCode::mismatch, "the state does not fit " + title());
  has_image_ = true;
  history_.restart(history);
  broken_.reset();
  co_return std::nullopt;
}

std::optional<Problem> ShardHost::complete(std::uint64_t position, std::optional<std::uint64_t> history,
                                           std::uint32_t epoch) {
  if (auto problem = not_following(epoch)) return problem;
  if (arriving_image_ != 0 || broken_ || position != shard_->position() || is_working_ || offload_.is_lent() ||
      !(is_complete_ || has_image_) || !history_.may_be_followed_by(history))
    return Problem(ProblemCode::out_of_order,
                   title() + " is at position " + std::to_string(shard_->position()) + " here");
  is_complete_ = true;
  return std::nullopt;
}

}  // namespace chorus::parameters
