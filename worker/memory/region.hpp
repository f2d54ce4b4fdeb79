// Memory of a client program that it lets the worker use, wherever it is: what lies in it may change at any time.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

namespace chorus::memory {

class Region {
 public:
  Region() = default;
  virtual ~Region() = default;
  Region(Region const&) = delete;
  Region& operator=(Region const&) = delete;

  [[nodiscard]] virtual std::string const& name() const = 0;  // that the client has given it here
  [[nodiscard]] virtual std::span<std::byte> bytes() const = 0;
  // Why it is not to be used any more, or nothing. May be a system call.
  [[nodiscard]] virtual std::optional<std::string> damage() const = 0;
};

}  // namespace chorus::memory
