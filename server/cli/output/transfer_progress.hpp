// Shows the progress of a transfer on one line.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/logging/progress_line.hpp"

namespace chorus::cli {

// Returns "grad to w0: 1.2 of 4 GiB, 30 %, 1.1 GB/s, 2.6 s left"; before the first byte "grad to w0: 0 B of 4 GiB".
[[nodiscard]] std::string format_progress(std::string_view what, std::uint64_t moved_bytes, std::uint64_t all_bytes,
                                          double seconds);

// The destructor removes the line. Shows a few states per second, and always the last.
class TransferProgress {
 public:
  using Clock = std::chrono::steady_clock;

  TransferProgress(std::string what, std::uint64_t all_bytes, Clock::time_point now);
  void show(std::uint64_t moved_bytes, Clock::time_point now);

 private:
  std::string const what_;
  std::uint64_t const all_bytes_;
  Clock::time_point const began_;
  Clock::time_point next_;
  logging::ProgressLine line_;
};

}  // namespace chorus::cli
