// ShardHost's part for push logs. Pushes are applied at once and answered when they are on the disk; pushes that arrive
// during a sync are written with the next one. An image of the shard replaces a long log, while pushes go on.
#include <algorithm>
#include <boost/asio/use_awaitable.hpp>
#include <deque>

#include "worker/parameters/serving/shard_host.hpp"

namespace chorus::parameters {
namespace {

namespace asio = boost::asio;
using http::Problem;
using http::ProblemCode;
using std::chrono::steady_clock;

constexpr std::chrono::milliseconds before_repeating{500};
constexpr std::size_t longest_queue = 1024;
constexpr std::uint64_t largest_queue_bytes = 256 << 20;

http::Checked<Status> begin_there(PushLog& log, bool is_first, std::uint64_t& generation) {
  if (is_first)
    if (auto status = log.open(); !status) return status;
  auto const begun = log.begin();
  if (!begun) return Status(begun.error());
  generation = *begun;
  return ok();
}

struct Appended {
  Status status = ok();
  std::uint64_t bytes = 0;
  double seconds = 0;
};

http::Checked<Appended> append_there(PushLog& log, std::vector<LogEntry> const& entries) {
  auto const begun = steady_clock::now();
  auto const before = log.bytes();
  Appended appended;
  appended.status = log.append(entries);
  appended.bytes = log.bytes() - before;
  appended.seconds = std::chrono::duration<double>(steady_clock::now() - begun).count();
  return appended;
}

}  // namespace

// Shared with work on the disk's threads, which uses `log` only.
struct ShardHost::Logging {
  Logging(std::shared_ptr<checkpoints::Files> disk_files, std::string directory, std::uint32_t epoch)
      : files(std::move(disk_files)), log(*files, std::move(directory), epoch) {}

  struct Unanswered {
    std::uint64_t position;
    JobPtr job;
    api::PushAnswer answer;
  };
  std::shared_ptr<checkpoints::Files> const files;
  PushLog log;
  std::vector<LogEntry> queue;  // to be written
  std::uint64_t queue_bytes = 0;
  std::deque<Unanswered> unanswered;   // in the order of their positions
  std::uint64_t durable_position = 0;  // pushes below it survive a crash
  std::uint64_t generation = 0;
  std::shared_ptr<ShardImage const> image;  // of the beginning of the generation, until it has been written
  std::uint64_t base_bytes = 0;
  http::TimePoint snapshot_not_before{};
  bool is_opened = false;
  bool has_base = false;                 // a complete base exists, and every push since is in the log or the queue
  std::optional<http::Problem> failure;  // why the last attempt has made no base
  bool is_ended = false;
  bool wants_image = false;
};

void ShardHost::begin_logging() {
  if (!spec_.is_logged || logging_ || closed_) return;
  auto* const disk = tools_.logs.disk;
  auto logging =
      std::make_unique<Logging>(disk->files(), log_directory(tools_.logs.root, spec_.parameter, spec_.index), epoch_);
  // The log is destroyed on a disk thread, because closing a file waits for the disk.
  logging_ = std::shared_ptr<Logging>(logging.release(),
                                      [disk](Logging* ended) { disk->let_go(std::shared_ptr<Logging const>(ended)); });
  tasks_.spawn("log of " + title(), keep_log(logging_));
}

// Refuses all unanswered pushes: it is not known whether they are on the disk.
void ShardHost::end_logging() {
  if (!logging_) return;
  logging_->is_ended = true;
  for (auto const& [position, job, answer] : logging_->unanswered) finish(*job, closed_ ? *closed_ : misdirected());
  logging_->unanswered.clear();
  logging_ = nullptr;
  changed_.notify_all();
}

// Also called for a duplicate push, because the first one may not be on the disk yet.
void ShardHost::answer_when_durable(JobPtr const& job, api::PushAnswer const& answer) {
  if (!logging_ || logging_->durable_position >= shard_->position())
    finish(*job, answer);
  else if (logging_->failure)
    finish(*job, *logging_->failure);
  else
    logging_->unanswered.push_back({shard_->position() - 1, job, answer});
}

void ShardHost::log(LogEntry entry) {
  auto& logging = *logging_;
  logging.queue_bytes += entry.push.data ? entry.push.data->size_bytes() : 0;
  logging.queue.push_back(std::move(entry));
  changed_.notify_all();
}

bool ShardHost::log_is_behind() const {
  return logging_ && (logging_->wants_image || logging_->queue.size() >= longest_queue ||
                      logging_->queue_bytes >= largest_queue_bytes);
}

void ShardHost::answer_durable() {
  auto& logging = *logging_;
  while (!logging.unanswered.empty() && logging.unanswered.front().position < logging.durable_position) {
    auto const first = std::move(logging.unanswered.front());
    logging.unanswered.pop_front();
    finish(*first.job, first.answer);
  }
}

asio::awaitable<std::optional<Problem>> ShardHost::until_logged(http::TimePoint deadline) {
  auto const self = shared_from_this();
  while (logging_ && !logging_->has_base && !logging_->failure && !closed_ && steady_clock::now() < deadline)
    co_await changed_.wait_until(deadline);
  if (closed_) co_return *closed_;
  if (auto failure = log_failure()) co_return failure;
  if (logging_ && !logging_->has_base)
    co_return Problem(ProblemCode::deadline_exceeded, "the log of " + title() + " has not been written yet");
  co_return std::nullopt;
}

// Begins a generation between two pushes, so that the image is of the position at which the new file begins. False if
// there is no image, and the queue was written to the old file, or if the log has failed.
asio::awaitable<bool> ShardHost::begin_generation(std::shared_ptr<Logging> logging) {
  logging->wants_image = true;
  while (is_working_ && !logging->is_ended) co_await changed_.wait_until(http::TimePoint::max());
  if (logging->is_ended) co_return false;
  auto image = co_await take_image();
  auto const rest = std::exchange(logging->queue, {});
  logging->queue_bytes = 0;
  logging->wants_image = false;
  changed_.notify_all();
  auto status = ok();
  if (logging->has_base && !rest.empty()) status = co_await append(logging, rest);
  if (!status) co_return fail_log(*logging, status.error());
  if (!image) co_return false;
  std::function<http::Checked<Status>()> const begin = [logging, is_first = !logging->is_opened] {
    return begin_there(logging->log, is_first, logging->generation);
  };
  auto const begun = co_await tools_.logs.disk->run("beginning the log of " + title(), begin, http::TimePoint::max(),
                                                    Disk::Patience::endless);
  if (!begun) co_return false;  // the disk is stopped
  if (!*begun) co_return fail_log(*logging, begun->error());
  logging->is_opened = true;
  logging->image = std::make_shared<ShardImage const>(std::move(*image));
  co_return true;
}

asio::awaitable<Status> ShardHost::append(std::shared_ptr<Logging> logging, std::vector<LogEntry> entries) {
  auto const durable_position = entries.back().position + 1;
  auto const count = entries.size();
  std::function<http::Checked<Appended>()> const append =
      [logging, entries = std::make_shared<std::vector<LogEntry> const>(std::move(entries))] {
        return append_there(logging->log, *entries);
      };
  auto const appended = co_await tools_.logs.disk->run("writing the log of " + title(), append, http::TimePoint::max(),
                                                       Disk::Patience::endless);
  if (!appended) co_return Error(std::make_error_code(std::errc::operation_canceled), appended.error().detail);
  if (!appended->status) co_return appended->status;
  logging->durable_position = durable_position;
  if (tools_.events.logged) tools_.events.logged(count, appended->bytes, appended->seconds);
  co_return ok();
}

// Refuses all unanswered pushes, because the failure may last. An applied push is acknowledged when it is repeated and
// a base contains it.
bool ShardHost::fail_log(Logging& logging, Error const& why) {
  logging.has_base = false;
  logging.failure = Problem(ProblemCode::unavailable, "the log of " + title() + " cannot be written: " + why.detail +
                                                          "; repeat the push with the same sequence");
  logging.failure->retry_after_s = 1;
  for (auto const& [position, job, answer] : std::exchange(logging.unanswered, {})) finish(*job, *logging.failure);
  if (tools_.events.log_failed) tools_.events.log_failed(title(), why.detail);
  changed_.notify_all();
  return false;
}

std::optional<Problem> ShardHost::log_failure() const { return logging_ ? logging_->failure : std::nullopt; }

// Returns a problem for a push whose deadline has passed, if a slow disk call is the reason.
std::optional<Problem> ShardHost::why_not_logged(JobPtr const& job) const {
  if (!logging_) return std::nullopt;
  auto const is_applied = std::ranges::any_of(logging_->unanswered, [&](auto const& one) { return one.job == job; });
  if (!is_applied && !log_is_behind()) return std::nullopt;
  auto const stall = tools_.logs.disk->longest();
  if (!stall) return std::nullopt;
  constexpr double worth_telling_s = 0.5;
  if (stall->seconds < worth_telling_s) return std::nullopt;
  auto const tenths = static_cast<std::uint64_t>(stall->seconds * 10);
  Problem problem(ProblemCode::unavailable, title() + ": the push is not on the disk: " + stall->text +
                                                " has not returned for " + std::to_string(tenths / 10) + "." +
                                                std::to_string(tenths % 10) + " s; repeat it with the same sequence");
  problem.retry_after_s = 1;
  return problem;
}

asio::awaitable<bool> ShardHost::write_base(std::shared_ptr<Logging> logging) {
  auto const image = logging->image;
  std::function<http::Checked<Status>()> const write = [logging, image, generation = logging->generation,
                                                        spec = spec_]() -> http::Checked<Status> {
    return logging->log.write_base(generation, spec, *image);
  };
  auto const written = co_await tools_.logs.disk->run("writing a base of " + title(), write, http::TimePoint::max(),
                                                      Disk::Patience::endless);
  logging->image = nullptr;
  changed_.notify_all();
  if (!written) co_return false;  // the disk is stopped
  if (!*written) {
    if (!logging->has_base) co_return fail_log(*logging, written->error());
    if (tools_.events.log_failed) tools_.events.log_failed(title(), written->error().detail);
    co_return false;
  }
  logging->base_bytes = 0;
  for (auto const& array : image->arrays) logging->base_bytes += array.content.bytes.size();
  logging->durable_position = std::max(logging->durable_position, image->state.position);
  co_return true;
}

// Writes a base while pushes go on. If that fails, the base before and both log files are still the complete log.
asio::awaitable<void> ShardHost::replace_base(std::shared_ptr<Logging> logging) {
  auto const is_written = co_await write_base(logging);
  if (is_written && tools_.events.log_truncated) tools_.events.log_truncated();
  if (!is_written) logging->snapshot_not_before = steady_clock::now() + before_repeating;
}

// Makes the first base, or a new one after a failure of the disk. No push is answered before it is written.
asio::awaitable<void> ShardHost::make_base(std::shared_ptr<Logging> logging) {
  while (logging->image != nullptr) co_await changed_.wait_until(http::TimePoint::max());
  auto const is_begun = co_await begin_generation(logging);
  auto is_written = is_begun;
  if (is_begun) is_written = co_await write_base(logging);
  if (logging->is_ended) co_return;
  if (is_written) {
    logging->has_base = true;
    logging->failure.reset();
    answer_durable();
    changed_.notify_all();
    co_return;
  }
  if (is_begun) co_await withdraw_generation(logging);
  co_await pause(before_repeating);
}

// Removes the file of a generation without a base: otherwise a full disk would get a file at every attempt.
asio::awaitable<void> ShardHost::withdraw_generation(std::shared_ptr<Logging> logging) {
  std::function<http::Checked<Status>()> const withdraw = [logging]() -> http::Checked<Status> {
    logging->log.withdraw();
    return ok();
  };
  static_cast<void>(co_await tools_.logs.disk->run("clearing the log of " + title(), withdraw, http::TimePoint::max(),
                                                   Disk::Patience::endless));
}

asio::awaitable<void> ShardHost::keep_log(std::shared_ptr<Logging> logging) {
  while (!logging->is_ended) {
    if (!logging->has_base) {
      co_await make_base(logging);
      continue;
    }
    if (logging->queue.empty()) {
      co_await changed_.wait_until(http::TimePoint::max());
      continue;
    }
    auto const is_long = logging->log.bytes() > std::max(tools_.logs.snapshot_bytes, logging->base_bytes);
    if (is_long && logging->image == nullptr && steady_clock::now() >= logging->snapshot_not_before) {
      auto const begun = co_await begin_generation(logging);
      if (logging->is_ended) break;
      if (begun)
        tasks_.spawn("base of " + title(), replace_base(logging));
      else
        logging->snapshot_not_before = steady_clock::now() + before_repeating;
      answer_durable();
      continue;
    }
    auto const batch = std::exchange(logging->queue, {});
    logging->queue_bytes = 0;
    changed_.notify_all();
    auto const status = co_await append(logging, batch);
    if (logging->is_ended) break;
    if (status)
      answer_durable();
    else
      fail_log(*logging, status.error());
  }
}

asio::awaitable<void> ShardHost::remove_log() {
  if (!spec_.is_logged || tools_.logs.root.empty()) co_return;
  constexpr std::chrono::minutes patience{1};
  std::function<http::Checked<Status>()> const remove =
      [files = tools_.logs.disk->files(), directory = log_directory(tools_.logs.root, spec_.parameter, spec_.index),
       epoch = std::uint64_t{epoch_} + 1]() -> http::Checked<Status> { return remove_logs(*files, directory, epoch); };
  auto const removed =
      co_await tools_.logs.disk->run("removing the log of " + title(), remove, steady_clock::now() + patience);
  auto const why = !removed ? removed.error().detail : !*removed ? removed->error().detail : std::string();
  if (!why.empty() && tools_.events.log_failed) tools_.events.log_failed(title(), why);
}

}  // namespace chorus::parameters
