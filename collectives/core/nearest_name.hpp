// Error texts for a name that is not in a closed set of names.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace chorus {

// Returns the name with the smallest edit distance to `wrong`, or "" if none is near.
[[nodiscard]] std::string_view nearest_name(std::string_view wrong, std::span<std::string_view const> names);

// Returns "unknown algorithm 'rnig'; did you mean 'ring'?" or, without a near name, "unknown algorithm 'x'; there are
// ring, tree, ...".
[[nodiscard]] std::string unknown_name(std::string_view what, std::string_view wrong,
                                       std::span<std::string_view const> names);
[[nodiscard]] std::string unknown_name(std::string_view what, std::string_view wrong,
                                       std::initializer_list<std::string_view> names);

// Returns the names of a list of enumerators such as all_ops or all_dtypes.
template <class Vocabulary>
[[nodiscard]] std::vector<std::string_view> names_of(Vocabulary const& vocabulary) {
  std::vector<std::string_view> names;
  for (auto const value : vocabulary) names.push_back(name(value));
  return names;
}

}  // namespace chorus
