// The file operations that a checkpoint is made of. An argument everywhere, so that tests can crash after any of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "collectives/core/result.hpp"

namespace chorus::checkpoints {

// A file that is being written, from its beginning to its end. Closed by its destructor, which syncs nothing.
class OutputFile {
 public:
  virtual ~OutputFile() = default;
  [[nodiscard]] virtual Status write(std::span<std::byte const> bytes) = 0;  // all of them, or an error
  [[nodiscard]] virtual Status sync() = 0;                                   // what was written survives a crash
};

class InputFile {
 public:
  virtual ~InputFile() = default;
  [[nodiscard]] virtual std::uint64_t size() const = 0;
  // All of `bytes`, from `offset` on. Beyond the end: an error.
  [[nodiscard]] virtual Status read(std::uint64_t offset, std::span<std::byte> bytes) const = 0;
};

// Errors of all: the operating system's code, with the path in the detail.
class Files {
 public:
  virtual ~Files() = default;
  [[nodiscard]] virtual Status make_directory(std::string const& path) = 0;  // no error if it exists
  [[nodiscard]] virtual Result<std::unique_ptr<OutputFile>> create(
      std::string const& path) = 0;  // empties what is there
  [[nodiscard]] virtual Result<std::unique_ptr<InputFile>> open(std::string const& path) = 0;
  [[nodiscard]] virtual Status rename(std::string const& from, std::string const& to) = 0;  // replaces `to`
  [[nodiscard]] virtual Status remove(std::string const& path) = 0;                         // a file
  [[nodiscard]] virtual Status remove_directory(std::string const& path) = 0;               // an empty one
  [[nodiscard]] virtual Status sync_directory(std::string const& path) = 0;  // its entries survive a crash
  [[nodiscard]] virtual Result<std::vector<std::string>> list(std::string const& path) = 0;  // names, in any order
};

// The real ones: POSIX, blocking. Stateless, for any thread.
[[nodiscard]] std::unique_ptr<Files> posix_files();

}  // namespace chorus::checkpoints
