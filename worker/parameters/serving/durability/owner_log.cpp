#include "worker/parameters/serving/durability/owner_log.hpp"

#include <algorithm>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

#include "base/runtime/pause.hpp"

namespace chorus::parameters {
namespace {

namespace asio = boost::asio;
using http::Problem;
using http::ProblemCode;
using std::chrono::steady_clock;

constexpr std::chrono::milliseconds before_repeating{500};
constexpr std::size_t longest_queue = 1024;
constexpr std::uint64_t largest_queue_bytes = 256 << 20;

bool is_stopped(Error const& error) { return error.code == std::errc::operation_canceled; }

}  // namespace

OwnerLog::OwnerLog(ShardTools const& tools, ShardCopy& copy, Tenure const& tenure, PushQueue& queue,
                   http::TaskGroup& tasks)
    : tools_(tools),
      copy_(copy),
      tenure_(tenure),
      queue_(queue),
      tasks_(tasks),
      log_(*tools.logs.disk, tenure.title(), log_directory(tools.logs.root, copy.spec().parameter, copy.spec().index),
           tenure.epoch()) {}

asio::awaitable<void> OwnerLog::keep(std::shared_ptr<OwnerLog> log) {
  auto& changed = log->copy_.changed();
  while (!log->is_ended_) {
    if (!log->has_base_) {
      co_await log->make_base();
    } else if (log->queued_.empty()) {
      co_await changed.wait_until(http::TimePoint::max());
    } else if (log->has_grown_long()) {
      auto const begun = co_await log->begin_generation();
      if (log->is_ended_) break;
      if (begun)
        log->tasks_.spawn("base of " + log->tenure_.title(), replace_base(log));
      else
        log->snapshot_not_before_ = steady_clock::now() + before_repeating;
      log->answer_durable();
    } else {
      auto batch = log->take_queued();
      changed.notify_all();
      auto const status = co_await log->append(std::move(batch));
      if (log->is_ended_) break;
      if (status)
        log->answer_durable();
      else
        log->fail(status.error());
    }
  }
}

void OwnerLog::end(Problem const& why) {
  is_ended_ = true;
  refuse_unanswered(why);
  copy_.changed().notify_all();
}

void OwnerLog::add(LogEntry entry) {
  queued_bytes_ += entry.push.data ? entry.push.data->size_bytes() : 0;
  queued_.push_back(std::move(entry));
  copy_.changed().notify_all();
}

std::vector<LogEntry> OwnerLog::take_queued() {
  queued_bytes_ = 0;
  return std::exchange(queued_, {});
}

void OwnerLog::answer_when_durable(PushQueue::JobPtr const& job, api::PushAnswer const& answer) {
  auto const position = copy_.shard().position();
  if (durable_position_ >= position)
    queue_.answer(*job, answer);
  else if (failure_)
    queue_.answer(*job, *failure_);
  else
    unanswered_.push_back({position - 1, job, answer});
}

void OwnerLog::answer_durable() {
  while (!unanswered_.empty() && unanswered_.front().position < durable_position_) {
    auto const first = std::move(unanswered_.front());
    unanswered_.pop_front();
    queue_.answer(*first.job, first.answer);
  }
}

void OwnerLog::refuse_unanswered(Problem const& why) {
  for (auto const& [position, job, answer] : std::exchange(unanswered_, {})) queue_.answer(*job, why);
}

bool OwnerLog::is_behind() const {
  return wants_image_ || queued_.size() >= longest_queue || queued_bytes_ >= largest_queue_bytes;
}

bool OwnerLog::has_grown_long() const {
  return log_.bytes() > std::max(tools_.logs.snapshot_bytes, base_bytes_) && image_ == nullptr &&
         steady_clock::now() >= snapshot_not_before_;
}

// Refuses all unanswered pushes, because the failure may last. An applied push is acknowledged when it is repeated and
// a base contains it.
bool OwnerLog::fail(Error const& why) {
  has_base_ = false;
  failure_ = Problem(ProblemCode::unavailable, "the log of " + tenure_.title() + " cannot be written: " + why.detail +
                                                   "; repeat the push with the same sequence");
  failure_->retry_after_s = 1;
  refuse_unanswered(*failure_);
  report(why);
  copy_.changed().notify_all();
  return false;
}

void OwnerLog::report(Error const& why) const {
  if (tools_.events.log_failed) tools_.events.log_failed(tenure_.title(), why.detail);
}

std::optional<Problem> OwnerLog::why_not_durable(PushQueue::JobPtr const& job) const {
  auto const is_applied = std::ranges::any_of(unanswered_, [&](auto const& one) { return one.job == job; });
  if (!is_applied && !is_behind()) return std::nullopt;
  constexpr double worth_telling_s = 0.5;
  auto const stall = tools_.logs.disk->longest();
  if (!stall || stall->seconds < worth_telling_s) return std::nullopt;
  auto const tenths = static_cast<std::uint64_t>(stall->seconds * 10);
  Problem problem(ProblemCode::unavailable, tenure_.title() + ": the push is not on the disk: " + stall->text +
                                                " has not returned for " + std::to_string(tenths / 10) + "." +
                                                std::to_string(tenths % 10) + " s; repeat it with the same sequence");
  problem.retry_after_s = 1;
  return problem;
}

// Makes the first base, or a new one after a failure of the disk. No push is answered before it is written.
asio::awaitable<void> OwnerLog::make_base() {
  while (image_ != nullptr) co_await copy_.changed().wait_until(http::TimePoint::max());
  auto const is_begun = co_await begin_generation();
  auto is_written = is_begun;
  if (is_begun) is_written = co_await write_base();
  if (is_ended_) co_return;
  if (is_written) {
    has_base_ = true;
    failure_.reset();
    answer_durable();
    copy_.changed().notify_all();
    co_return;
  }
  // Otherwise a full disk would get a file at every attempt.
  if (is_begun) co_await log_.withdraw();
  co_await http::pause(before_repeating);
}

// Writes a base while pushes go on. If that fails, the base before and both log files are still the complete log.
asio::awaitable<void> OwnerLog::replace_base(std::shared_ptr<OwnerLog> log) {
  auto const is_written = co_await log->write_base();
  if (is_written && log->tools_.events.log_truncated) log->tools_.events.log_truncated();
  if (!is_written) log->snapshot_not_before_ = steady_clock::now() + before_repeating;
}

// Begins a generation between two pushes, so that the image is of the position at which the new file begins. False if
// there is no image, and the queue was written to the old file, or if the log has failed.
asio::awaitable<bool> OwnerLog::begin_generation() {
  wants_image_ = true;
  while (copy_.is_working() && !is_ended_) co_await copy_.changed().wait_until(http::TimePoint::max());
  if (is_ended_) co_return false;
  auto image = co_await copy_.image();
  auto rest = take_queued();
  wants_image_ = false;
  copy_.changed().notify_all();
  auto status = ok();
  if (has_base_ && !rest.empty()) status = co_await append(std::move(rest));
  if (!status) co_return fail(status.error());
  if (!image) co_return false;
  status = co_await log_.begin();
  if (!status && is_stopped(status.error())) co_return false;
  if (!status) co_return fail(status.error());
  image_ = std::make_shared<ShardImage const>(std::move(*image));
  co_return true;
}

asio::awaitable<bool> OwnerLog::write_base() {
  auto const image = image_;
  auto const written = co_await log_.write_base(copy_.spec(), image);
  image_ = nullptr;
  copy_.changed().notify_all();
  if (!written) {
    if (is_stopped(written.error())) co_return false;
    if (!has_base_) co_return fail(written.error());
    report(written.error());
    co_return false;
  }
  base_bytes_ = 0;
  for (auto const& array : image->arrays) base_bytes_ += array.content.bytes.size();
  durable_position_ = std::max(durable_position_, image->state.position);
  co_return true;
}

asio::awaitable<Status> OwnerLog::append(std::vector<LogEntry> entries) {
  auto const durable_position = entries.back().position + 1;
  auto const count = entries.size();
  auto const appended = co_await log_.append(std::move(entries));
  if (!appended) co_return appended.error();
  durable_position_ = durable_position;
  if (tools_.events.logged) tools_.events.logged(count, appended->bytes, appended->seconds);
  co_return ok();
}

}  // namespace chorus::parameters
