// What the coordinator must not forget, on its way to the disk.
//
// Writing is asynchronous: write() notes a row, flush() returns when everything noted so far is on the disk. Rows of
// many callers share a transaction: while one is being written, the next one fills. A thread of its own waits for the
// disk, because a sync takes milliseconds, and seconds on a disk that is busy, while the thread that serves has leases
// to renew.
#pragma once

#include <spdlog/logger.h>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/runtime/condition.hpp"
#include "base/runtime/side_thread.hpp"
#include "base/runtime/task_group.hpp"
#include "http/json/problem.hpp"
#include "server/coordinator/journal/failpoint.hpp"
#include "server/coordinator/journal/store.hpp"

namespace chorus::coordinator {

struct JournalPatience {
  std::chrono::milliseconds lazy{100};    // until rows are written that nobody waits for
  std::chrono::milliseconds retry{1000};  // after a write has failed
  // With one write: after it the disk counts as one that does not answer. The same for a journal that cannot be written
  // to make the coordinator unready.
  std::chrono::milliseconds stall{5000};
  std::chrono::milliseconds look{2000};  // at the file, where nothing is to be written
};

// On the executor's one thread. The log outlives this.
class Journal {
 public:
  using Clock = std::chrono::steady_clock;

  // Without a store everything stays in memory, and every call succeeds at once. `instead`: see SideThread.
  Journal(boost::asio::any_io_executor executor, std::unique_ptr<Store> store, JournalPatience patience,
          Failpoint failpoint, spdlog::logger& log, boost::asio::any_io_executor instead = {});
  ~Journal();  // after stop(), or without start()
  Journal(Journal const&) = delete;
  Journal& operator=(Journal const&) = delete;

  // The rows of the last life. Call before start(). Errors: JournalErrc.
  [[nodiscard]] Result<std::vector<Row>> read();

  // `observer` is told how long each write took that succeeded. Call before start().
  void on_written(std::function<void(Clock::duration)> observer) { observer_ = std::move(observer); }

  void start();
  // Writes what is left, if it can be written by then. A thread that the disk does not answer is left behind, with the
  // file.
  boost::asio::awaitable<void> stop(Clock::time_point until = Clock::time_point::max());

  // A row that replaces another one which has not been written yet costs nothing.
  void write(Row row);
  // Everything that was noted before is durable, or why not: then it is tried again and again, whether somebody waits
  // or not. Problems: unavailable, also when a write has taken too long; deadline_exceeded.
  boost::asio::awaitable<std::optional<http::Problem>> flush(Clock::time_point deadline = Clock::time_point::max());
  // The same without waiting.
  void hurry();

  // Why the last attempt has failed, if it has, or takes too long: what must not be forgotten is then not begun.
  [[nodiscard]] std::optional<http::Problem> failure() const;
  // The same, once it has been so for longer than the patience with a stall.
  [[nodiscard]] std::optional<http::Problem> lasting_failure() const;
  [[nodiscard]] bool on_disk() const { return store_ != nullptr; }

  struct Counts {
    std::uint64_t writes = 0, failures = 0;  // transactions
    std::uint64_t unwritten = 0;             // changes that are not durable
    std::uint64_t bytes = 0;                 // of the store
    double waiting_seconds = 0;              // for the disk, of the write that is under way
    std::optional<double> last_seconds;      // of the last transaction; empty before the first
  };
  // Of a journal that is on disk.
  [[nodiscard]] Counts counts() const;

  // Of a journal that is on disk.
  [[nodiscard]] StoreIdentity identity() const { return store_->identity(); }

  // Every write() has a number, from 1; those up to durable() are on the disk.
  [[nodiscard]] std::uint64_t written() const { return written_; }
  [[nodiscard]] std::uint64_t durable() const { return store_ ? durable_ : written_; }
  // durable() or failure() may have changed.
  [[nodiscard]] http::Condition& changed() { return changed_; }

 private:
  using Key = std::pair<Table, std::string>;
  struct Writing;

  boost::asio::awaitable<void> write_batches();
  boost::asio::awaitable<void> write_batch();
  boost::asio::awaitable<std::optional<Status>> write_there(std::shared_ptr<std::vector<Row> const> batch);
  [[nodiscard]] bool is_stalled() const;
  [[nodiscard]] bool is_time() const;
  void at(std::string_view point) const {
    if (failpoint_) failpoint_(point);
  }

  boost::asio::any_io_executor executor_;
  std::shared_ptr<Store> const store_;  // shared with the thread
  JournalPatience const patience_;
  Failpoint const failpoint_;
  spdlog::logger& log_;
  std::map<Key, std::optional<std::string>> pending_;
  Clock::time_point due_{};      // of what is pending
  Clock::time_point look_at_{};  // when the file is looked at, if nothing is written before
  std::uint64_t written_ = 0, durable_ = 0;
  std::uint64_t asked_ = 0;                  // somebody waits for what was written up to here
  std::uint64_t writes_ = 0, failures_ = 0;  // attempts
  std::optional<double> last_seconds_;       // of the last one that succeeded
  std::optional<Error> failure_;
  std::optional<Clock::time_point> failing_since_;
  std::shared_ptr<Writing> writing_;  // on the thread; null: nothing
  bool stopping_ = false;
  Clock::time_point stop_until_ = Clock::time_point::max();
  http::Condition work_;
  http::Condition changed_;
  std::unique_ptr<http::SideThread> thread_;
  http::TaskGroup writer_;
  std::function<void(Clock::duration)> observer_;
};

}  // namespace chorus::coordinator
