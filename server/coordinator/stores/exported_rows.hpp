// Rows of a store as text, which moves them to another store: one JSON object per line.
//
// A header, one line per row, and the checksum of all lines before it:
//   {"format":"chorus-journal","version":1,"release":"0.2.0","cluster":"training","rows":1}
//   {"table":"epochs","key":"g","body":"{\"last\":1}"}
//   {"checksum":"xxh3:0123456789abcdef"}
#pragma once

#include <functional>
#include <iosfwd>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "server/coordinator/journal/store.hpp"

namespace chorus::coordinator {

struct ExportedRows {
  std::string release;  // version that exported the rows
  std::string cluster;  // name of their cluster in etcd; "" for rows of a file
  std::vector<Row> rows;
};

// Calls `write` for each line, with its line end. Stops at an error of `write` and returns it.
[[nodiscard]] Status write_export(ExportedRows const& exported, std::function<Status(std::string_view)> const& write);

// Reads an export. Errors call the text `name`. Errors: JournalErrc not_a_journal, newer, damaged.
[[nodiscard]] Result<ExportedRows> read_export(std::istream& in, std::string const& name);

}  // namespace chorus::coordinator
