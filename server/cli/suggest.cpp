#include "server/cli/suggest.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

namespace chorus::cli {
namespace {

// Optimal string alignment distance, with three rows of the usual table.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  std::iota(last.begin(), last.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

}  // namespace

std::optional<std::string> nearest(std::string_view word, std::span<std::string const> candidates) {
  auto best = std::max<std::size_t>(1, word.size() / 3) + 1;
  std::optional<std::string> found;
  for (auto const& candidate : candidates)
    if (auto const changes = distance(word, candidate); changes < best) {
      best = changes;
      found = candidate;
    }
  return found;
}

}  // namespace chorus::cli
