// What to say about a name that is none of a closed set.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace chorus {

// The name that needs the fewest insertions, deletions and replacements of one character to become `wrong`; "" if none
// is near.
[[nodiscard]] std::string_view nearest_name(std::string_view wrong, std::span<std::string_view const> names);

// "unknown algorithm 'rnig'; did you mean 'ring'?", or, where none is near, "unknown algorithm 'x'; there are ring,
// tree".
[[nodiscard]] std::string unknown_name(std::string_view what, std::string_view wrong,
                                       std::span<std::string_view const> names);
[[nodiscard]] std::string unknown_name(std::string_view what, std::string_view wrong,
                                       std::initializer_list<std::string_view> names);

// The names of a vocabulary: all_ops, all_dtypes, ...
template <class Vocabulary>
[[nodiscard]] std::vector<std::string_view> names_of(Vocabulary const& vocabulary) {
  std::vector<std::string_view> names;
  for (auto const value : vocabulary) names.push_back(name(value));
  return names;
}

}  // namespace chorus
