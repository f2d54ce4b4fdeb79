// Whether, and when, a request is sent again whose answer was lost. Pure: the caller has the clock and the pauses.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

namespace chorus::cli {

// What became of a request.
enum class Delivery : std::uint8_t {
  none,      // there was no connection, or the service could not take the request yet
  lost,      // the connection ended without an answer: the request may have been carried out
  silent,    // no answer within the request's patience: it may have been carried out, too
  answered,  // or failed in a way that no repetition changes
};

class Repeats {
 public:
  using Clock = std::chrono::steady_clock;

  // How often a lost answer is asked for again, and how long after the first one: the service may be starting again,
  // and refuses connections meanwhile.
  static constexpr int most_after_losses = 3;
  static constexpr std::chrono::seconds restart_patience{8};

  // Returns the pause before the request is sent again. Empty: it is not.
  [[nodiscard]] std::optional<std::chrono::milliseconds> pause_after(Delivery delivery, Clock::time_point now);

 private:
  int losses_ = 0;
  Clock::time_point first_loss_;
  std::chrono::milliseconds pause_{100};
};

}  // namespace chorus::cli
