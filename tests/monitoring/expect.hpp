// A condition outside of the test's own assertions.
#pragma once

#include <stdexcept>
#include <string>

namespace chorus::testing {

// Throws std::runtime_error with `what` unless the condition holds.
inline void expect(bool holds, std::string const& what) {
  if (!holds) throw std::runtime_error(what);
}

}  // namespace chorus::testing
