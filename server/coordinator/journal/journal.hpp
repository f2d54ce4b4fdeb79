// Writes the coordinator's rows to its store, asynchronously.
//
// write() notes a row; flush() returns when all rows noted so far are durable. Rows of many callers share a
// transaction: while one transaction is written, the next one fills. A separate thread waits for the disk. A sync takes
// milliseconds, or seconds on a busy disk, and the serving thread has leases to renew.
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

// Times of a journal; tests set others.
struct JournalPatience {
  std::chrono::milliseconds lazy{100};    // time until rows are written for which no caller waits
  std::chrono::milliseconds retry{1000};  // time between attempts after a failed write
  // Limit of one write; a longer write counts as unanswered. A journal that has failed for so long makes the
  // coordinator unready.
  std::chrono::milliseconds stall{5000};
  std::chrono::milliseconds look{2000};  // interval at which the file is checked while no rows are written
};

// Owned by the coordinator; called on the executor's one thread. The log outlives the journal.
class Journal {
 public:
  using Clock = std::chrono::steady_clock;

  // Without a store everything stays in memory, and every call succeeds at once. `instead`: an executor that replaces
  // the thread, see SideThread.
  Journal(boost::asio::any_io_executor executor, std::unique_ptr<Store> store, JournalPatience patience,
          Failpoint failpoint, spdlog::logger& log, boost::asio::any_io_executor instead = {});
  ~Journal();  // call after stop(), or without start()
  Journal(Journal const&) = delete;
  Journal& operator=(Journal const&) = delete;

  // Returns the rows of the store. Call before start(). Errors: JournalErrc.
  [[nodiscard]] Result<std::vector<Row>> read();

  // The observer gets the duration of each successful write. Call before start().
  void on_written(std::function<void(Clock::duration)> observer) { observer_ = std::move(observer); }

  void start();
  // Writes the remaining rows, if the disk answers until then. Otherwise leaves the thread that waits for the disk, and
  // its store, behind.
  boost::asio::awaitable<void> stop(Clock::time_point until = Clock::time_point::max());

  // Notes a row. Replaces a noted row of the same key that has not been written yet.
  void write(Row row);
  // The same for a large row that may change often: its body is made when it is written, by a function that may be
  // called until stop() has ended.
  using Body = std::function<std::optional<std::string>()>;
  void write(Table table, std::string key, Body body);
  // Waits until all rows noted so far are durable; returns the problem if they are not. The journal then goes on
  // trying, with or without a caller that waits. Problems: unavailable, also for a write longer than the patience with
  // a stall; deadline_exceeded.
  boost::asio::awaitable<std::optional<http::Problem>> flush(Clock::time_point deadline = Clock::time_point::max());
  // Starts the write of all noted rows without waiting for its end.
  void hurry();

  // Returns the reason why the last attempt failed or takes too long. The coordinator then begins nothing that needs
  // the journal.
  [[nodiscard]] std::optional<http::Problem> failure() const;
  // Returns failure() once it has lasted for the patience with a stall.
  [[nodiscard]] std::optional<http::Problem> lasting_failure() const;
  [[nodiscard]] bool on_disk() const { return store_ != nullptr; }

  struct Counts {
    std::uint64_t writes = 0, failures = 0;  // transactions
    std::uint64_t unwritten = 0;             // rows noted and not durable
    std::uint64_t bytes = 0;                 // of the store
    double waiting_seconds = 0;              // of the write under way, for the disk
    std::optional<double> last_seconds;      // of the last transaction; empty before the first
  };
  // Requires on_disk().
  [[nodiscard]] Counts counts() const;

  // Requires on_disk().
  [[nodiscard]] StoreIdentity identity() const { return store_->identity(); }

  // Numbers of write() calls, from 1. Those up to durable() are durable.
  [[nodiscard]] std::uint64_t written() const { return written_; }
  [[nodiscard]] std::uint64_t durable() const { return store_ ? durable_ : written_; }
  // Notified when durable() or failure() may have changed.
  [[nodiscard]] http::Condition& changed() { return changed_; }

 private:
  using Key = std::pair<Table, std::string>;
  struct Writing;

  boost::asio::awaitable<void> write_batches();
  boost::asio::awaitable<void> write_batch();
  boost::asio::awaitable<std::optional<Status>> write_there(std::shared_ptr<std::vector<Row> const> batch);
  [[nodiscard]] bool is_stalled() const;
  [[nodiscard]] bool is_time() const;
  [[nodiscard]] bool has_rows() const { return !pending_.empty() || !late_.empty(); }
  bool note();
  void at(std::string_view point) const {
    if (failpoint_) failpoint_(point);
  }

  boost::asio::any_io_executor executor_;
  std::shared_ptr<Store> const store_;  // shared with the thread that waits for the disk
  JournalPatience const patience_;
  Failpoint const failpoint_;
  spdlog::logger& log_;
  std::map<Key, std::optional<std::string>> pending_;
  std::map<Key, Body> late_;     // pending rows whose bodies are not made yet
  Clock::time_point due_{};      // when the pending rows are written at the latest
  Clock::time_point look_at_{};  // when the file is checked, if no rows are written before
  std::uint64_t written_ = 0, durable_ = 0;
  std::uint64_t asked_ = 0;                  // number of the last row for which a caller waits
  std::uint64_t writes_ = 0, failures_ = 0;  // transactions that succeeded; attempts that failed
  std::optional<double> last_seconds_;       // duration of the last transaction
  std::optional<Error> failure_;
  std::optional<Clock::time_point> failing_since_;
  std::shared_ptr<Writing> writing_;  // the write under way; null: none
  bool stopping_ = false;
  Clock::time_point stop_until_ = Clock::time_point::max();
  http::Condition work_;
  http::Condition changed_;
  std::unique_ptr<http::SideThread> thread_;
  http::TaskGroup writer_;
  std::function<void(Clock::duration)> observer_;
};

}  // namespace chorus::coordinator
