// What a shard's owner has acknowledged, on its disk: a base, which is an image of the shard, and the pushes since. A
// base replaces the one before it when it is whole, so the log stays short. The format: docs/push_log.md.
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
  std::uint64_t position = 0;  // of the shard, before it
  Push push;
};

// Of one stretch in which a worker owns a shard, which began with an epoch; the next one has files of its own.
//
// Blocking; one call at a time, on any thread, except that write_base may run beside append. The files outlive it.
// Errors of all: the operating system's. What has failed is not repeated here: after a failure of append or begin, the
// next generation begins.
class PushLog {
 public:
  // `shard_directory`: see log_directory.
  PushLog(checkpoints::Files& files, std::string shard_directory, std::uint32_t epoch);
  PushLog(PushLog const&) = delete;
  PushLog& operator=(PushLog const&) = delete;

  // Makes the directories. Before anything else.
  [[nodiscard]] Status open();

  // Pushes go into a new file from now on, of which the next base is the beginning. Gives its generation.
  [[nodiscard]] Result<std::uint64_t> begin();
  // When it has returned, they survive a crash, all with one sync.
  [[nodiscard]] Status append(std::span<LogEntry const> entries);
  // The image with which that generation began; when it has returned, older ones and those of former epochs are gone.
  [[nodiscard]] Status write_base(std::uint64_t generation, ShardSpec const& spec, ShardImage const& image);

  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }  // of the pushes of this generation

 private:
  [[nodiscard]] std::string path(std::string const& name) const { return directory_ + "/" + name; }
  [[nodiscard]] Status remove_before(std::uint64_t generation);

  checkpoints::Files& files_;
  std::string const shard_directory_;
  std::uint32_t const epoch_;
  std::string const directory_;
  std::unique_ptr<checkpoints::OutputFile> file_;
  std::uint64_t generation_ = 0;
  std::uint64_t bytes_ = 0;
};

// Those of a shard that began before that epoch: it has moved, or was deleted.
[[nodiscard]] Status remove_logs(checkpoints::Files& files, std::string const& shard_directory, std::uint64_t epoch);

// The shard as the log of its last epoch has it: everything that was acknowledged, once. What was not synced when the
// process ended may be missing. Errors: not_found; damaged, with file and byte, for what was synced and is not what was
// written; misfit; out of memory; the operating system's.
[[nodiscard]] Result<std::unique_ptr<Shard>> recover(checkpoints::Files& files, std::string const& shard_directory,
                                                     ShardSpec spec, ShardMemory memory);

// Of a shard, below that of all logs.
[[nodiscard]] std::string log_directory(std::string const& root, std::string const& parameter, std::uint32_t shard);

}  // namespace chorus::parameters
