// Checks texts for people: their wording may change, their subject may not.
#pragma once

#include <string_view>

namespace chorus::testing {

inline bool mentions(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

}  // namespace chorus::testing
