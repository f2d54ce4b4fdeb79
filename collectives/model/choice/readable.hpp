// Numbers in the reasons of choices.
#pragma once

#include <string>

namespace chorus::model {

// A duration as a number of us, ms or s.
struct InUnit {
  double number = 0;
  char const* unit = "s";
};
[[nodiscard]] InUnit in_unit(double seconds);

// Returns text like "1.90 ms".
[[nodiscard]] std::string duration(double seconds);

}  // namespace chorus::model
