#include "server/cli/output/transfer_progress.hpp"

#include <cmath>

#include "server/cli/text/units.hpp"

namespace chorus::cli {
namespace {

constexpr std::chrono::milliseconds period{100};

// Returns text like "1.2 of 4 GiB" or "512 MiB of 4 GiB": a common unit is written once.
std::string format_share(std::uint64_t part_bytes, std::uint64_t all_bytes) {
  auto part = format_bytes(part_bytes);
  auto const all = format_bytes(all_bytes);
  auto const unit = part.find(' ');
  if (part.substr(unit) == all.substr(all.find(' '))) part.resize(unit);
  return part + " of " + all;
}

std::string format_left(double seconds) {
  return seconds < 100 ? format_decimal(seconds, 1) + " s" : format_seconds(seconds);
}

}  // namespace

std::string format_progress(std::string_view what, std::uint64_t moved_bytes, std::uint64_t all_bytes, double seconds) {
  auto text = std::string(what) + ": " + format_share(moved_bytes, all_bytes);
  if (moved_bytes == 0 || seconds <= 0) return text;
  auto const moved = static_cast<double>(moved_bytes), all = static_cast<double>(all_bytes);
  auto const bytes_per_second = moved / seconds;
  return text + ", " + format_decimal(std::floor(100 * moved / all), 0) + " %, " + format_rate(bytes_per_second) +
         ", " + format_left((all - moved) / bytes_per_second) + " left";
}

TransferProgress::TransferProgress(std::string what, std::uint64_t all_bytes, Clock::time_point now)
    : what_(std::move(what)), all_bytes_(all_bytes), began_(now), next_(now) {
  show(0, now);
}

void TransferProgress::show(std::uint64_t moved_bytes, Clock::time_point now) {
  if (now < next_ && moved_bytes < all_bytes_) return;
  next_ = now + period;
  line_.show(format_progress(what_, moved_bytes, all_bytes_, std::chrono::duration<double>(now - began_).count()));
}

}  // namespace chorus::cli
