#include "collectives/model/readable.hpp"

#include <array>
#include <cstdio>
#include <utility>

namespace chorus::model {

std::string duration(double seconds) {
  std::array<char, 32> text{};
  auto const [scale, unit] = seconds < 1e-3 ? std::pair(1e6, "us")
                             : seconds < 1  ? std::pair(1e3, "ms")
                                            : std::pair(1.0, "s");
  std::snprintf(text.data(), text.size(), "%.2f %s", seconds * scale, unit);
  return text.data();
}

}  // namespace chorus::model
