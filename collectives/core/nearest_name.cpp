#include "collectives/core/nearest_name.hpp"

#include <algorithm>
#include <numeric>

namespace chorus {
namespace {

std::size_t edits(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t(0));
  for (std::size_t i = 0; i < a.size(); ++i) {
    auto diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      auto const replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string_view nearest_name(std::string_view wrong, std::span<std::string_view const> names) {
  constexpr std::size_t longest = 64;
  if (wrong.size() > longest) return {};
  std::string_view nearest;
  auto fewest = std::max<std::size_t>(2, wrong.size() / 3) + 1;
  for (auto const name : names) {
    if (auto const count = edits(wrong, name); count < fewest && count < name.size()) {
      fewest = count;
      nearest = name;
    }
  }
  return nearest;
}

std::string unknown_name(std::string_view what, std::string_view wrong, std::span<std::string_view const> names) {
  constexpr std::size_t shown_bytes = 64;
  std::string text = "unknown " + std::string(what) + " '" + std::string(wrong.substr(0, shown_bytes)) + "'; ";
  for (auto& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  if (auto const meant = nearest_name(wrong, names); !meant.empty())
    return text + "did you mean '" + std::string(meant) + "'?";
  text += "there are ";
  for (std::size_t i = 0; i < names.size(); ++i) (text += i == 0 ? "" : ", ") += names[i];
  return text;
}

std::string unknown_name(std::string_view what, std::string_view wrong, std::initializer_list<std::string_view> names) {
  return unknown_name(what, wrong, std::span(names.begin(), names.size()));
}

}  // namespace chorus
