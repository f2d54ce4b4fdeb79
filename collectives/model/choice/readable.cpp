#include "collectives/model/choice/readable.hpp"

#include <array>
#include <cstdio>

namespace chorus::model {

InUnit in_unit(double seconds) {
  if (seconds < 1e-3) return {seconds * 1e6, "us"};
  if (seconds < 1) return {seconds * 1e3, "ms"};
  return {seconds, "s"};
}

std::string duration(double seconds) {
  std::array<char, 32> text{};
  auto const [number, unit] = in_unit(seconds);
  std::snprintf(text.data(), text.size(), "%.2f %s", number, unit);
  return text.data();
}

}  // namespace chorus::model
