#include "server/coordinator/journal.hpp"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <filesystem>

#include "http/until_done_there.hpp"

namespace chorus::coordinator {
namespace {

namespace asio = boost::asio;
using Clock = std::chrono::steady_clock;

// On the journal's thread. A batch that has begun is waited for: a cancellation does not cross threads.
asio::awaitable<Status> write_there(JournalFile* file, std::shared_ptr<std::vector<Row> const> rows) {
  co_return file->write(*rows);
}
}  // namespace

Journal::Journal(asio::any_io_executor executor, std::unique_ptr<JournalFile> file, JournalPatience patience,
                 Failpoint failpoint, spdlog::logger& log, asio::any_io_executor instead)
    : file_(std::move(file)),
      patience_(patience),
      failpoint_(std::move(failpoint)),
      log_(log),
      work_(executor),
      changed_(executor),
      thread_(std::move(instead)),
      writer_(executor) {}

Result<std::vector<Row>> Journal::read() { return file_ ? file_->read() : std::vector<Row>(); }

void Journal::start() {
  if (file_) writer_.spawn("journal", write_batches());
}

asio::awaitable<void> Journal::stop() {
  stopping_ = true;
  work_.notify_all();
  co_await writer_.join();
  if (!pending_.empty() && failure_) log_.error("{} rows are lost: {}", pending_.size(), failure_->detail);
}

void Journal::write(Row row) {
  ++written_;
  if (file_) {
    if (pending_.empty()) {
      due_ = Clock::now() + patience_.lazy;
      work_.notify_all();
    }
    pending_.insert_or_assign({row.table, std::move(row.key)}, std::move(row.body));
  } else {
    changed_.notify_all();
  }
}

void Journal::hurry() {
  if (durable() == written_) return;
  asked_ = written_;
  work_.notify_all();
}

asio::awaitable<std::optional<http::Problem>> Journal::flush() {
  auto const wanted = written_;
  auto const failures = failures_;
  hurry();
  while (durable() < wanted && failures_ == failures && !stopping_)
    co_await changed_.wait_until(Clock::time_point::max());
  if (durable() >= wanted) co_return std::nullopt;
  if (auto problem = failure()) co_return problem;
  co_return http::Problem(http::ProblemCode::unavailable, "the coordinator is stopping");
}

std::optional<http::Problem> Journal::failure() const {
  if (!failure_) return std::nullopt;
  http::Problem problem(http::ProblemCode::unavailable, failure_->detail + "; nothing is begun until it can be");
  problem.retry_after_s = 1;
  return problem;
}

Journal::Counts Journal::counts() const {
  Counts counts{writes_, failures_, written_ - durable_, 0};
  for (auto const* suffix : {"", "-wal", "-shm"}) {
    std::error_code missing;
    if (auto const bytes = std::filesystem::file_size(file_->path() + suffix, missing); !missing) counts.bytes += bytes;
  }
  return counts;
}

bool Journal::is_time() const { return !pending_.empty() && (stopping_ || asked_ > durable_ || Clock::now() >= due_); }

asio::awaitable<void> Journal::write_batches() {
  while (!(stopping_ && pending_.empty())) {
    if (!is_time()) {
      co_await work_.wait_until(pending_.empty() ? Clock::time_point::max() : due_);
      continue;
    }
    co_await write_batch();
    if (stopping_ && failure_) co_return;
  }
}

asio::awaitable<void> Journal::write_batch() {
  auto const batch = std::make_shared<std::vector<Row>>();
  for (auto& [key, body] : pending_) batch->push_back({key.first, key.second, std::move(body)});
  pending_.clear();
  auto const reaches = written_;
  at("journal: before a write");
  auto const done =
      co_await asio::co_spawn(thread_.executor(), write_there(file_.get(), batch), http::until_done_there());
  at("journal: after a write");
  if (done) {
    if (failure_) log_.info("the journal {} can be written again", file_->path());
    failure_.reset();
    durable_ = reaches;
    ++writes_;
  } else {
    if (!failure_) log_.error("{}; nothing is begun until it can be", done.error().detail);
    failure_ = done.error();
    ++failures_;
    asked_ = durable_;
    // What was noted meanwhile is newer.
    for (auto& row : *batch) pending_.emplace(Key(row.table, std::move(row.key)), std::move(row.body));
    due_ = Clock::now() + patience_.retry;
  }
  changed_.notify_all();
}

}  // namespace chorus::coordinator
