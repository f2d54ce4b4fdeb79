// The push log of a shard on threads of the disk.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "worker/parameters/disk/disk.hpp"
#include "worker/parameters/log/push_log.hpp"

namespace chorus::parameters {

// Used on the control thread. The disk outlives it. See PushLog, also for which calls may run at the same time. A call
// goes on if its caller is cancelled. Errors of all calls: the operating system's; operation_canceled if the disk is
// stopped.
class DiskLog {
 public:
  // title: of the shard, for people.
  DiskLog(Disk& disk, std::string title, std::string directory, std::uint32_t epoch);

  // Begins a generation; the first time opens the log.
  boost::asio::awaitable<Status> begin();
  struct Appended {
    std::uint64_t bytes = 0;
    double seconds = 0;
  };
  boost::asio::awaitable<Result<Appended>> append(std::vector<LogEntry> entries);
  // Writes the base of the last generation.
  boost::asio::awaitable<Status> write_base(ShardSpec spec, std::shared_ptr<ShardImage const> image);
  // Removes the file of a generation that gets no base.
  boost::asio::awaitable<void> withdraw();
  [[nodiscard]] std::uint64_t bytes() const;  // of the pushes of this generation

  // Removes the logs of a shard that began before that epoch.
  static boost::asio::awaitable<Status> remove(Disk& disk, std::string title, std::string directory,
                                               std::uint64_t epoch);

 private:
  struct State;
  template <class T>
  boost::asio::awaitable<Result<T>> run(std::string what, std::function<http::Checked<Result<T>>()> work);

  Disk& disk_;
  std::string const title_;
  std::shared_ptr<State> state_;  // shared with the work
};

}  // namespace chorus::parameters
