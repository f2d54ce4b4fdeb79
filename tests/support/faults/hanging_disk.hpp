// A disk that a test can make hang, for programs that it starts.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/scratch_directory.hpp"

namespace chorus::testing {

// All files below `directory` answer, or none does.
class HangingDisk {
 public:
  // `library`: path of the library that is built from hanging_disk.cpp.
  HangingDisk(std::string directory, std::string library)
      : directory_(std::move(directory)), library_(std::move(library)) {}
  [[nodiscard]] std::vector<std::string> under(std::vector<std::string> arguments) const {
    std::vector<std::string> all{"/usr/bin/env", "LD_PRELOAD=" + library_, "CHORUS_HANG_BELOW=" + directory_,
                                 "CHORUS_HANG_WHILE=" + flag()};
    all.insert(all.end(), arguments.begin(), arguments.end());
    return all;
  }
  void hang() const { write_file(flag(), "1"); }
  void answer() const { std::filesystem::remove(flag()); }

 private:
  [[nodiscard]] std::string flag() const { return state_ / "hangs"; }
  std::string const directory_, library_;
  ScratchDirectory const state_;
};

}  // namespace chorus::testing
