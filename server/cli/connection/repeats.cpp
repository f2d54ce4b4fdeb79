#include "server/cli/connection/repeats.hpp"

#include <algorithm>
#include <utility>

namespace chorus::cli {

std::optional<std::chrono::milliseconds> Repeats::pause_after(Delivery delivery, Clock::time_point now) {
  constexpr std::chrono::milliseconds longest_pause{1000};
  if (delivery == Delivery::silent || delivery == Delivery::answered) return std::nullopt;
  if (delivery == Delivery::lost && losses_++ == 0) first_loss_ = now;
  if (losses_ == 0 || losses_ > most_after_losses || now - first_loss_ >= restart_patience) return std::nullopt;
  return std::exchange(pause_, std::min(2 * pause_, longest_pause));
}

}  // namespace chorus::cli
