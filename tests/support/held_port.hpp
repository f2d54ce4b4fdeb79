// A reserved free port on loopback: for a service whose address is used before it listens, or that is restarted on the
// same port.
#pragma once

#include <cstdint>
#include <string>

namespace chorus::testing {

// While the object lives, the system assigns the port to no process, neither for listening nor for connecting. A
// process that binds it by number with SO_REUSEADDR, as servers do, gets it, also several times. Throws
// std::system_error.
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
