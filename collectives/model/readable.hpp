// Numbers in the reasons of choices.
#pragma once

#include <string>

namespace chorus::model {

// Returns text like "1.90 ms".
[[nodiscard]] std::string duration(double seconds);

}  // namespace chorus::model
