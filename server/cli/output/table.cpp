#include "server/cli/output/table.hpp"

#include <algorithm>
#include <ostream>

#include "collectives/core/assert.hpp"

namespace chorus::cli {
namespace {

// Counts code points of UTF-8, not bytes: a name with an umlaut must not shift its row.
std::size_t width_of(std::string const& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

void append(std::string& line, std::string const& cell, Align align, std::size_t width) {
  auto const padding = std::string(width - width_of(cell), ' ');
  line += align == Align::right ? padding + cell : cell + padding;
}

}  // namespace

void Table::add(std::vector<std::string> cells) {
  CHORUS_ASSERT(cells.size() == columns_.size(), "a row has one cell per column");
  for (auto& cell : cells)
    if (cell.empty()) cell.assign(1, '-');
  rows_.push_back(std::move(cells));
}

void Table::print(std::ostream& out) const {
  std::vector<std::size_t> widths;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    widths.push_back(width_of(columns_[c].title));
    for (auto const& row : rows_) widths[c] = std::max(widths[c], width_of(row[c]));
  }
  auto const print_line = [&](auto const& cell_of) {
    std::string line;
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      if (c > 0) line += "  ";
      append(line, cell_of(c), columns_[c].align, widths[c]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out << line << '\n';
  };
  print_line([&](std::size_t c) { return columns_[c].title; });
  for (auto const& row : rows_) print_line([&](std::size_t c) { return row[c]; });
}

}  // namespace chorus::cli
