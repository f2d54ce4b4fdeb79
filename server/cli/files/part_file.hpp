// A file that is written over time: PATH.part, renamed to PATH when it is complete; or standard output.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "collectives/core/result.hpp"

namespace chorus::cli {

// The destructor removes an unfinished file.
class PartFile {
 public:
  // Without `overwrites` neither PATH nor PATH.part may exist. Errors of all functions: CliErrc::bad_file, with the
  // path.
  [[nodiscard]] static Result<PartFile> create(std::string path, bool overwrites);
  // What was written before a failure stays written.
  [[nodiscard]] static Result<PartFile> of_standard_output();
  ~PartFile();
  PartFile(PartFile&& other) noexcept;
  PartFile& operator=(PartFile&&) = delete;

  [[nodiscard]] Status append(std::span<std::byte const> bytes);
  // Writes the file to the disk and gives it its name.
  [[nodiscard]] Status finish();

 private:
  PartFile(std::string path, bool overwrites);
  [[nodiscard]] Error failed() const;  // makes the error from errno

  std::string path_, part_;  // part_: "" for standard output
  bool overwrites_;
  int descriptor_ = -1;
};

// "-" names standard output.
[[nodiscard]] bool is_standard(std::string_view path);

// Checks that PATH is a plain file or does not exist, and that files can be made in its directory. Errors:
// CliErrc::bad_file.
[[nodiscard]] Status check_place(std::string const& path);

// Checks that PATH can be created without overwriting a file. Errors: CliErrc::bad_file.
[[nodiscard]] Status check_absent(std::string const& path);

}  // namespace chorus::cli
