// The push log of a shard's owner: a base, which is an image of the shard, and all pushes that were acknowledged since.
// A complete base replaces the one before it, so the log stays short. The format: docs/reference/push_log.md.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "worker/parameters/checkpoints/files.hpp"
#include "worker/parameters/log/errc.hpp"
#include "worker/parameters/shard/shard.hpp"

namespace chorus::parameters {

struct LogEntry {
  std::uint64_t position = 0;  // of the shard, before the push
  Push push;
  std::optional<std::uint64_t> history = {};  // of the owner, before the push; not written to the log
};

// The log of one period in which a worker owns a shard, named after the epoch in which the period began. The next
// period has files of its own.
//
// Blocking. One call at a time, on any thread, except that write_base may run beside append. The files outlive it.
// Errors of all calls: the operating system's. After a failure of append or begin, the next generation must begin.
class PushLog {
 public:
  // `shard_directory`: see log_directory.
  PushLog(checkpoints::Files& files, std::string shard_directory, std::uint32_t epoch);
  PushLog(PushLog const&) = delete;
  PushLog& operator=(PushLog const&) = delete;

  // Makes the directories, and removes incomplete bases of earlier processes. Called first.
  [[nodiscard]] Status open();

  // Begins a generation: later pushes go into a new file, and the next base is its beginning. Returns its number.
  [[nodiscard]] Result<std::uint64_t> begin();
  // Writes pushes with one sync. They survive a crash once it has returned.
  [[nodiscard]] Status append(std::span<LogEntry const> entries);
  // Writes the image with which the generation began, then removes older generations and former epochs. After an error
  // no part of the base is left.
  [[nodiscard]] Status write_base(std::uint64_t generation, ShardSpec const& spec, ShardImage const& image);
  // Ends a new generation without pushes that gets no base: removes its file, if possible.
  void withdraw();

  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }  // of the pushes of this generation

 private:
  [[nodiscard]] std::string path(std::string const& name) const { return directory_ + "/" + name; }
  [[nodiscard]] Status remove_before(std::uint64_t generation);
  [[nodiscard]] Status write_whole(std::string const& path, std::string const& text, ShardImage const& image);
  void remove_temporary_bases() const;

  checkpoints::Files& files_;
  std::string const shard_directory_;
  std::uint32_t const epoch_;
  std::string const directory_;
  std::unique_ptr<checkpoints::OutputFile> file_;
  std::uint64_t generation_ = 0;
  std::uint64_t bytes_ = 0;
};

// Removes the logs of a shard that began before that epoch, because the shard has moved or was deleted.
[[nodiscard]] Status remove_logs(checkpoints::Files& files, std::string const& shard_directory, std::uint64_t epoch);

// Returns the directory of a shard's log, below the directory of all logs.
[[nodiscard]] std::string log_directory(std::string const& root, std::string const& parameter, std::uint32_t shard);

}  // namespace chorus::parameters
