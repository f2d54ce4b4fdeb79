#include "server/coordinator/journal/journal.hpp"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <mutex>
#include <utility>

namespace chorus::coordinator {
namespace {

namespace asio = boost::asio;

std::string in_tenths(Journal::Clock::duration time) {
  auto const tenths = std::chrono::duration_cast<std::chrono::milliseconds>(time).count() / 100;
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " s";
}

}  // namespace

// A write under way, shared by the journal and its thread.
struct Journal::Writing {
  Clock::time_point begun = Clock::now();
  std::optional<Status> done;  // set on the executor
  std::mutex mutex;
  bool is_left = false;  // the journal, and perhaps the executor, is destroyed; guarded by the mutex
};

Journal::Journal(asio::any_io_executor executor, std::unique_ptr<Store> store, JournalPatience patience,
                 Failpoint failpoint, spdlog::logger& log, asio::any_io_executor instead)
    : executor_(executor),
      store_(std::move(store)),
      patience_(patience),
      failpoint_(std::move(failpoint)),
      log_(log),
      work_(executor),
      changed_(executor),
      thread_(std::make_unique<http::SideThread>(std::move(instead))),
      writer_(executor) {}

// Nothing ends a thread that waits in the kernel for a disk. Its pool is leaked, because the pool's destructor would
// join the thread.
Journal::~Journal() {
  auto* const left = writing_ ? thread_.release() : nullptr;
  static_cast<void>(left);
}

Result<std::vector<Row>> Journal::read() { return store_ ? store_->read() : std::vector<Row>(); }

void Journal::start() {
  look_at_ = Clock::now() + patience_.look;
  if (store_) writer_.spawn("journal", write_batches());
}

asio::awaitable<void> Journal::stop(Clock::time_point until) {
  stopping_ = true;
  stop_until_ = until;
  work_.notify_all();
  changed_.notify_all();
  co_await writer_.join();
  if (writing_)
    log_.error("the journal {} has not been written for {}: the disk does not answer; what was not durable is lost",
               store_->place(), in_tenths(Clock::now() - writing_->begun));
  else if (!pending_.empty() && failure_)
    log_.error("{} rows are lost: {}", pending_.size(), failure_->detail);
}

// Counts a row. False without a store.
bool Journal::note() {
  ++written_;
  if (!store_) {
    changed_.notify_all();
    return false;
  }
  if (!has_rows()) {
    due_ = Clock::now() + patience_.lazy;
    work_.notify_all();
  }
  return true;
}

void Journal::write(Row row) {
  if (!note()) return;
  Key key(row.table, std::move(row.key));
  late_.erase(key);
  pending_.insert_or_assign(std::move(key), std::move(row.body));
}

void Journal::write(Table table, std::string key, Body body) {
  if (note()) late_.insert_or_assign(Key(table, std::move(key)), std::move(body));
}

void Journal::hurry() {
  if (durable() == written_) return;
  asked_ = written_;
  work_.notify_all();
}

asio::awaitable<std::optional<http::Problem>> Journal::flush(Clock::time_point deadline) {
  auto const wanted = written_;
  auto const failures = failures_;
  hurry();
  while (durable() < wanted && failures_ == failures && !stopping_ && !is_stalled() && Clock::now() < deadline) {
    auto const looks_again = writing_ ? writing_->begun : Clock::now();
    co_await changed_.wait_until(std::min(deadline, looks_again + patience_.stall));
  }
  if (durable() >= wanted) co_return std::nullopt;
  if (auto problem = failure()) co_return problem;
  if (stopping_) co_return http::Problem(http::ProblemCode::unavailable, "the coordinator is stopping");
  co_return http::Problem(http::ProblemCode::deadline_exceeded,
                          "the journal " + store_->place() + " was not written in time: its disk is slow");
}

bool Journal::is_stalled() const { return writing_ && Clock::now() - writing_->begun >= patience_.stall; }

std::optional<http::Problem> Journal::lasting_failure() const {
  if (is_stalled() || (failing_since_ && Clock::now() - *failing_since_ >= patience_.stall)) return failure();
  return std::nullopt;
}

std::optional<http::Problem> Journal::failure() const {
  if (is_stalled()) {
    http::Problem problem(http::ProblemCode::unavailable,
                          "the journal " + store_->place() + " has not been written for " +
                              in_tenths(Clock::now() - writing_->begun) +
                              ": the disk does not answer; nothing is begun until it does");
    problem.retry_after_s = 5;
    return problem;
  }
  if (!failure_) return std::nullopt;
  http::Problem problem(http::ProblemCode::unavailable, failure_->detail + "; nothing is begun until it can be");
  problem.retry_after_s = 1;
  return problem;
}

Journal::Counts Journal::counts() const {
  Counts counts{writes_, failures_, written_ - durable_, 0, 0, last_seconds_};
  if (writing_) counts.waiting_seconds = std::chrono::duration<double>(Clock::now() - writing_->begun).count();
  counts.bytes = store_->bytes();
  return counts;
}

bool Journal::is_time() const {
  if (!has_rows()) return Clock::now() >= look_at_;
  return stopping_ || asked_ > durable_ || Clock::now() >= due_;
}

asio::awaitable<void> Journal::write_batches() {
  while (!stopping_ || has_rows()) {
    if (!is_time()) {
      co_await work_.wait_until(has_rows() ? due_ : look_at_);
      continue;
    }
    co_await write_batch();
    if (stopping_ && (failure_ || writing_)) co_return;
  }
}

// Writes on the journal's thread. Returns nothing if the journal is stopped before the disk answers.
asio::awaitable<std::optional<Status>> Journal::write_there(std::shared_ptr<std::vector<Row> const> batch) {
  writing_ = std::make_shared<Writing>();
  asio::post(thread_->executor(), [this, executor = executor_, store = store_, batch, writing = writing_] {
    auto status = store->write(*batch);
    std::scoped_lock const lock(writing->mutex);
    if (writing->is_left) return;
    asio::post(executor, [this, writing, status = std::move(status)] {
      // The journal may be destroyed once it has left this write behind.
      if (writing->is_left) return;
      writing->done = status;
      changed_.notify_all();
    });
  });
  auto const writing = writing_;
  while (!writing->done && Clock::now() < stop_until_) co_await changed_.wait_until(stop_until_);
  if (!writing->done) {
    std::scoped_lock const lock(writing->mutex);
    writing->is_left = true;
    co_return std::nullopt;
  }
  writing_ = nullptr;
  co_return writing->done;
}

asio::awaitable<void> Journal::write_batch() {
  for (auto const& [key, body] : std::exchange(late_, {})) pending_.insert_or_assign(key, body());
  auto const batch = std::make_shared<std::vector<Row>>();
  for (auto& [key, body] : pending_) batch->push_back({key.first, key.second, std::move(body)});
  pending_.clear();
  auto const reaches = written_;
  // An empty batch only checks that the file is in its place.
  bool const writes = !batch->empty();
  if (writes) at("journal: before a write");
  auto const begun = Clock::now();
  auto const answered = co_await write_there(batch);
  if (!answered) co_return;
  auto const& done = *answered;
  if (writes) at("journal: after a write");
  look_at_ = Clock::now() + patience_.look;
  if (done) {
    if (failure_) log_.info("the journal {} can be written again", store_->place());
    failure_.reset();
    failing_since_.reset();
    durable_ = reaches;
    if (writes) {
      auto const took = Clock::now() - begun;
      ++writes_;
      last_seconds_ = std::chrono::duration<double>(took).count();
      if (observer_) observer_(took);
    }
  } else {
    if (!failure_) log_.error("{}; nothing is begun until it can be", done.error().detail);
    failure_ = done.error();
    if (!failing_since_) failing_since_ = begun;
    ++failures_;
    asked_ = durable_;
    // emplace() keeps the rows noted meanwhile, which are newer.
    for (auto& row : *batch) pending_.emplace(Key(row.table, std::move(row.key)), std::move(row.body));
    due_ = Clock::now() + patience_.retry;
  }
  changed_.notify_all();
}

}  // namespace chorus::coordinator
