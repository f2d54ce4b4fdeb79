// A disk in memory that does what disks and file systems do at their worst: what was not synced may be lost, torn or
// there, one entry of a directory without another, and any operation may fail.
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

class SimulatedDisk final : public Files {
 public:
  // With one directory, "disk".
  SimulatedDisk();

  // The n-th operation that changes something, from 0 on and counted from now, is the last that is begun: it may have
  // happened in part, and every one after it fails.
  void crash_at(std::uint64_t operation);
  // The n-th and the following `times` - 1 fail with this, having happened in part.
  void fail_at(std::uint64_t operation, std::errc code, std::uint64_t times = 1);
  [[nodiscard]] bool has_happened() const { return happened_; }  // what was asked for with crash_at or fail_at

  // What is found when the machine runs again: one of many possibilities.
  [[nodiscard]] SimulatedDisk after_crash(std::uint64_t seed) const;

  // The bytes of a file, to be looked at or damaged.
  [[nodiscard]] std::vector<std::byte>& bytes(std::string const& path);
  [[nodiscard]] std::vector<std::string> paths() const;  // of all files

  Status make_directory(std::string const& path) override;
  Result<std::unique_ptr<OutputFile>> create(std::string const& path) override;
  Result<std::unique_ptr<InputFile>> open(std::string const& path) override;
  Status rename(std::string const& from, std::string const& to) override;
  Status remove(std::string const& path) override;
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
    NodePtr node;         // what appears
  };

  // Counts an operation. An error: it fails.
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
