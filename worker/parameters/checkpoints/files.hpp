// The file operations of checkpoints: an interface, so that tests can simulate a crash after any operation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "collectives/core/result.hpp"

namespace chorus::checkpoints {

// A file that is written sequentially. The destructor closes it without a sync.
class OutputFile {
 public:
  virtual ~OutputFile() = default;
  [[nodiscard]] virtual Status write(std::span<std::byte const> bytes) = 0;  // writes all bytes, or fails
  [[nodiscard]] virtual Status sync() = 0;                                   // makes written bytes survive a crash
};

class InputFile {
 public:
  virtual ~InputFile() = default;
  [[nodiscard]] virtual std::uint64_t size() const = 0;
  // Reads all of `bytes` from `offset` on. Fails beyond the end.
  [[nodiscard]] virtual Status read(std::uint64_t offset, std::span<std::byte> bytes) const = 0;
};

// Errors of all functions: the operating system's code, with the path in the detail.
class Files {
 public:
  virtual ~Files() = default;
  [[nodiscard]] virtual Status make_directory(std::string const& path) = 0;  // no error if it exists
  // Creates or empties a file. While the file is open, no other process can create it, and remove_abandoned() leaves
  // it.
  [[nodiscard]] virtual Result<std::unique_ptr<OutputFile>> create(std::string const& path) = 0;
  // Errors: also errc::invalid_argument for anything but a file, such as a FIFO, without waiting.
  [[nodiscard]] virtual Result<std::unique_ptr<InputFile>> open(std::string const& path) = 0;
  [[nodiscard]] virtual Status rename(std::string const& from, std::string const& to) = 0;  // replaces `to`
  [[nodiscard]] virtual Status remove(std::string const& path) = 0;                         // a file
  // Removes a file unless a process still has it open since create(). Returns true if it was removed. The file stays if
  // the file system cannot tell.
  [[nodiscard]] virtual Result<bool> remove_abandoned(std::string const& path) = 0;
  [[nodiscard]] virtual Status remove_directory(std::string const& path) = 0;  // an empty one
  [[nodiscard]] virtual Status sync_directory(std::string const& path) = 0;    // its entries survive a crash
  [[nodiscard]] virtual Result<std::vector<std::string>> list(std::string const& path) = 0;  // names, in any order
};

// The implementation by POSIX calls: blocking, stateless, for any thread.
[[nodiscard]] std::unique_ptr<Files> posix_files();

}  // namespace chorus::checkpoints
