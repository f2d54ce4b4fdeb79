// What tests ask of a text that people read: its wording may change, not what it is about.
#pragma once

#include <string_view>

namespace chorus::testing {

inline bool mentions(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

}  // namespace chorus::testing
