// A file that comes about over time: PATH.part, which gets the name PATH when it is whole.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "collectives/core/result.hpp"

namespace chorus::cli {

// Destroyed before it is finished, it is gone.
class PartFile {
 public:
  // Without `overwrites` neither PATH nor PATH.part may exist. Errors, of all: CliErrc::bad_file, with the path.
  [[nodiscard]] static Result<PartFile> create(std::string path, bool overwrites);
  ~PartFile();
  PartFile(PartFile&& other) noexcept;
  PartFile& operator=(PartFile&&) = delete;

  [[nodiscard]] Status append(std::span<std::byte const> bytes);
  // On the disk, and under its name.
  [[nodiscard]] Status finish();

 private:
  PartFile(std::string path, bool overwrites);
  [[nodiscard]] Error failed() const;  // by errno

  std::string path_, part_;
  bool overwrites_;
  int descriptor_ = -1;
};

// Whether somebody who does not want to overwrite may create PATH now. Errors: CliErrc::bad_file.
[[nodiscard]] Status check_absent(std::string const& path);

}  // namespace chorus::cli
