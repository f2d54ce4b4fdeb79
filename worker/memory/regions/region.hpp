// Memory of a client program that the worker may use, on the host or on a GPU. The client may change the contents at
// any time.
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

  [[nodiscard]] virtual std::string const& name() const = 0;  // given by the client
  [[nodiscard]] virtual std::span<std::byte> bytes() const = 0;
  // Returns the reason why the region must not be used any more, or nothing. May be a system call.
  [[nodiscard]] virtual std::optional<std::string> damage() const = 0;
};

}  // namespace chorus::memory
