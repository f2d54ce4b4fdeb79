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
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "http/condition.hpp"
#include "http/problem.hpp"
#include "http/side_thread.hpp"
#include "http/task_group.hpp"
#include "server/coordinator/failpoint.hpp"
#include "server/coordinator/journal_file.hpp"

namespace chorus::coordinator {

struct JournalPatience {
  std::chrono::milliseconds lazy{100};    // until rows are written that nobody waits for
  std::chrono::milliseconds retry{1000};  // after a write has failed
};

// On the executor's one thread. The log outlives this.
class Journal {
 public:
  // Without a file everything stays in memory, and every call succeeds at once. `instead`: see SideThread.
  Journal(boost::asio::any_io_executor executor, std::unique_ptr<JournalFile> file, JournalPatience patience,
          Failpoint failpoint, spdlog::logger& log, boost::asio::any_io_executor instead = {});
  ~Journal() = default;  // after stop(), or without start()
  Journal(Journal const&) = delete;
  Journal& operator=(Journal const&) = delete;

  // The rows of the last life. Call before start(). Errors: JournalErrc.
  [[nodiscard]] Result<std::vector<Row>> read();

  void start();
  // Writes what is left, if it can be written.
  boost::asio::awaitable<void> stop();

  // A row that replaces another one which has not been written yet costs nothing.
  void write(Row row);
  // Everything that was noted before is durable, or why not: then it is tried again and again, whether somebody waits
  // or not. Problem: unavailable.
  boost::asio::awaitable<std::optional<http::Problem>> flush();
  // The same without waiting.
  void hurry();

  // Why the last attempt has failed, if it has: what must not be forgotten is then not begun.
  [[nodiscard]] std::optional<http::Problem> failure() const;
  [[nodiscard]] bool on_disk() const { return file_ != nullptr; }

  struct Counts {
    std::uint64_t writes = 0, failures = 0;  // transactions
    std::uint64_t unwritten = 0;             // changes that are not durable
    std::uint64_t bytes = 0;                 // of the file and what SQLite keeps beside it
  };
  // Of a journal that is on disk.
  [[nodiscard]] Counts counts() const;

  // Every write() has a number, from 1; those up to durable() are on the disk.
  [[nodiscard]] std::uint64_t written() const { return written_; }
  [[nodiscard]] std::uint64_t durable() const { return file_ ? durable_ : written_; }
  // durable() or failure() may have changed.
  [[nodiscard]] http::Condition& changed() { return changed_; }

 private:
  using Key = std::pair<Table, std::string>;

  boost::asio::awaitable<void> write_batches();
  boost::asio::awaitable<void> write_batch();
  [[nodiscard]] bool is_time() const;
  void at(std::string_view point) const {
    if (failpoint_) failpoint_(point);
  }

  std::unique_ptr<JournalFile> const file_;
  JournalPatience const patience_;
  Failpoint const failpoint_;
  spdlog::logger& log_;
  std::map<Key, std::optional<std::string>> pending_;
  std::chrono::steady_clock::time_point due_{};  // of what is pending
  std::uint64_t written_ = 0, durable_ = 0;
  std::uint64_t asked_ = 0;                  // somebody waits for what was written up to here
  std::uint64_t writes_ = 0, failures_ = 0;  // attempts
  std::optional<Error> failure_;
  bool stopping_ = false;
  http::Condition work_;
  http::Condition changed_;
  http::SideThread thread_;
  http::TaskGroup writer_;
};

}  // namespace chorus::coordinator
