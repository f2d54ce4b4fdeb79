// A disk in memory that simulates the worst behaviour of disks and file systems: unsynced data may be lost, incomplete
// or present, each directory entry independently of others, and any operation may fail.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <system_error>
#include <vector>

#include "worker/parameters/checkpoints/files.hpp"

namespace chorus::checkpoints::testing {

class SimulatedDisk : public Files {
 public:
  // Makes a disk with one directory, "disk".
  SimulatedDisk();

  // Crashes at the n-th changing operation from now, n >= 0: that operation may happen in part, and all later ones
  // fail.
  void crash_at(std::uint64_t operation);
  // Makes `times` operations from the n-th on fail with this code. Each may happen in part.
  void fail_at(std::uint64_t operation, std::errc code, std::uint64_t times = 1);
  [[nodiscard]] bool has_happened() const { return happened_; }  // the event of crash_at or fail_at

  // Returns the disk after a restart of the machine: one of many possible states.
  [[nodiscard]] SimulatedDisk after_crash(std::uint64_t seed) const;

  // Returns the bytes of a file, to check or to damage.
  [[nodiscard]] std::vector<std::byte>& bytes(std::string const& path);
  [[nodiscard]] std::vector<std::string> paths() const;  // of all files

  Status make_directory(std::string const& path) override;
  Result<std::unique_ptr<OutputFile>> create(std::string const& path) override;
  Result<std::unique_ptr<InputFile>> open(std::string const& path) override;
  Status rename(std::string const& from, std::string const& to) override;
  Status remove(std::string const& path) override;
  Result<bool> remove_abandoned(std::string const& path) override;  // all writers have died with the machine
  Status remove_directory(std::string const& path) override;
  Status sync_directory(std::string const& path) override;
  Result<std::vector<std::string>> list(std::string const& path) override;

 private:
  friend class SimulatedOutput;
  struct Node {
    bool is_directory = false;
    std::vector<std::byte> now, synced;
  };
  using NodePtr = std::shared_ptr<Node>;
  // A change of a directory's entries that has not been synced.
  struct Change {
    std::string directory;
    std::string gone;     // the entry that disappears, if any
    std::string appears;  // the entry that appears, if any
    NodePtr node;         // of the entry that appears
  };

  // Counts an operation. Returns an error if the operation must fail.
  [[nodiscard]] std::optional<Error> begin_operation();
  void change(Change const& change);
  [[nodiscard]] NodePtr find(std::string const& path) const;

  std::map<std::string, NodePtr> entries_, synced_entries_;  // by path
  std::vector<Change> pending_;
  std::uint64_t operations_ = 0;
  std::optional<std::uint64_t> crash_at_, fail_at_;
  std::errc fail_code_{};
  std::uint64_t fail_times_ = 0;
  bool happened_ = false;
};

}  // namespace chorus::checkpoints::testing
