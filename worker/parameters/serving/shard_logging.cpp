// How an owner keeps its log: pushes are applied at once and answered when the disk has them, those that come meanwhile
// with the next sync. When the log has become long, an image of the shard takes its place, while pushes go on.
#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <deque>

#include "http/until_done_there.hpp"

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

asio::awaitable<Status> begin_there(PushLog* log, bool is_first, std::uint64_t* generation) {
  if (is_first)
    if (auto status = log->open(); !status) co_return status;
  auto const begun = log->begin();
  if (!begun) co_return begun.error();
  *generation = *begun;
  co_return ok();
}

struct Appended {
  Status status = ok();
  std::uint64_t bytes = 0;
  double seconds = 0;
};

asio::awaitable<Appended> append_there(PushLog* log, std::vector<LogEntry> const* entries) {
  auto const begun = steady_clock::now();
  auto const before = log->bytes();
  Appended appended;
  appended.status = log->append(*entries);
  appended.bytes = log->bytes() - before;
  appended.seconds = std::chrono::duration<double>(steady_clock::now() - begun).count();
  co_return appended;
}

asio::awaitable<Status> remove_there(checkpoints::Files* files, std::string directory, std::uint64_t epoch) {
  co_return remove_logs(*files, directory, epoch);
}

asio::awaitable<Status> write_base_there(PushLog* log, std::uint64_t generation, ShardSpec const* spec,
                                         ShardImage const* image) {
  co_return log->write_base(generation, *spec, *image);
}

}  // namespace

struct ShardHost::Logging {
  Logging(checkpoints::Files& files, std::string directory, std::uint32_t epoch)
      : log(files, std::move(directory), epoch) {}

  struct Unanswered {
    std::uint64_t position;
    JobPtr job;
    api::PushAnswer answer;
  };
  PushLog log;
  std::vector<LogEntry> queue;  // to be written
  std::uint64_t queue_bytes = 0;
  std::deque<Unanswered> unanswered;   // in the order of their positions
  std::uint64_t durable_position = 0;  // pushes below it survive a crash
  std::uint64_t generation = 0;
  std::shared_ptr<ShardImage const> image;  // with which the generation began, until it has been written
  std::uint64_t base_bytes = 0;
  http::TimePoint snapshot_not_before{};
  bool is_opened = false;
  bool has_base = false;  // one that is whole, and every push since is in the log, or is coming
  bool is_ended = false;
  bool wants_image = false;
};

void ShardHost::begin_logging() {
  if (!spec_.is_logged || logging_ || closed_) return;
  logging_ = std::make_shared<Logging>(*tools_.logs.files,
                                       log_directory(tools_.logs.root, spec_.parameter, spec_.index), epoch_);
  tasks_.spawn("log of " + title(), keep_log(logging_));
}

// Who waits for an answer gets none from here: nobody knows whether the disk has it.
void ShardHost::end_logging() {
  if (!logging_) return;
  logging_->is_ended = true;
  for (auto const& [position, job, answer] : logging_->unanswered) finish(*job, closed_ ? *closed_ : misdirected());
  logging_->unanswered.clear();
  logging_ = nullptr;
  changed_.notify_all();
}

// Also of a push that was seen before: the disk may not have it yet.
void ShardHost::answer_when_durable(JobPtr const& job, api::PushAnswer const& answer) {
  if (!logging_ || logging_->durable_position >= shard_->position())
    finish(*job, answer);
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
  while (logging_ && !logging_->has_base && !closed_ && steady_clock::now() < deadline)
    co_await changed_.wait_until(deadline);
  if (closed_) co_return *closed_;
  if (logging_ && !logging_->has_base)
    co_return Problem(ProblemCode::deadline_exceeded, "the log of " + title() + " has not been written yet");
  co_return std::nullopt;
}

// Between two pushes: the image is that of the position at which the new file begins. False: there is none, and what
// was to be written is in the old file; or there is no whole log any more.
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
  status = co_await asio::co_spawn(*tools_.logs.threads,
                                   begin_there(&logging->log, !logging->is_opened, &logging->generation),
                                   http::until_done_there());
  if (!status) co_return fail_log(*logging, status.error());
  logging->is_opened = true;
  logging->image = std::make_shared<ShardImage const>(std::move(*image));
  co_return true;
}

asio::awaitable<Status> ShardHost::append(std::shared_ptr<Logging> logging, std::vector<LogEntry> entries) {
  auto const appended =
      co_await asio::co_spawn(*tools_.logs.threads, append_there(&logging->log, &entries), http::until_done_there());
  if (!appended.status) co_return appended.status;
  logging->durable_position = entries.back().position + 1;
  if (tools_.events.logged) tools_.events.logged(entries.size(), appended.bytes, appended.seconds);
  co_return ok();
}

bool ShardHost::fail_log(Logging& logging, Error const& why) {
  logging.has_base = false;
  if (tools_.events.log_failed) tools_.events.log_failed(title(), why.detail);
  return false;
}

asio::awaitable<bool> ShardHost::write_base(std::shared_ptr<Logging> logging) {
  auto const image = logging->image;
  auto const status = co_await asio::co_spawn(*tools_.logs.threads,
                                              write_base_there(&logging->log, logging->generation, &spec_, image.get()),
                                              http::until_done_there());
  logging->image = nullptr;
  changed_.notify_all();
  if (!status) {
    if (tools_.events.log_failed) tools_.events.log_failed(title(), status.error().detail);
    co_return false;
  }
  logging->base_bytes = 0;
  for (auto const& array : image->arrays) logging->base_bytes += array.content.bytes.size();
  logging->durable_position = std::max(logging->durable_position, image->state.position);
  co_return true;
}

// Beside the pushes. Without it, the base before and both files are still the whole log.
asio::awaitable<void> ShardHost::replace_base(std::shared_ptr<Logging> logging) {
  auto const is_written = co_await write_base(logging);
  if (is_written && tools_.events.log_truncated) tools_.events.log_truncated();
  if (!is_written) logging->snapshot_not_before = steady_clock::now() + before_repeating;
}

// At the beginning, and when the disk has failed: nothing is answered before there is a base again.
asio::awaitable<void> ShardHost::make_base(std::shared_ptr<Logging> logging) {
  while (logging->image != nullptr) co_await changed_.wait_until(http::TimePoint::max());
  auto is_written = co_await begin_generation(logging);
  if (is_written) is_written = co_await write_base(logging);
  if (logging->is_ended) co_return;
  if (is_written) {
    logging->has_base = true;
    answer_durable();
    changed_.notify_all();
  } else {
    co_await pause(before_repeating);
  }
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
  auto const status = co_await asio::co_spawn(
      *tools_.logs.threads,
      remove_there(tools_.logs.files, log_directory(tools_.logs.root, spec_.parameter, spec_.index),
                   std::uint64_t{epoch_} + 1),
      http::until_done_there());
  if (!status && tools_.events.log_failed) tools_.events.log_failed(title(), status.error().detail);
}

}  // namespace chorus::parameters
