// A free port on loopback that stays one's own: for a service that others are told of before it listens, or that is
// started again where the one before it was.
#pragma once

#include <cstdint>
#include <string>

namespace chorus::testing {

// While it lives, nobody is given the port by chance, neither to listen at nor to connect from. Whoever asks for it by
// its number with SO_REUSEADDR, as servers do, has it, also twice in a row. Throws std::system_error.
class HeldPort {
 public:
  HeldPort();
  ~HeldPort();
  HeldPort(HeldPort const&) = delete;
  HeldPort& operator=(HeldPort const&) = delete;

  [[nodiscard]] std::uint16_t number() const { return number_; }
  [[nodiscard]] std::string text() const { return std::to_string(number_); }

 private:
  int socket_;  // bound, and never listens
  std::uint16_t number_ = 0;
};

}  // namespace chorus::testing
