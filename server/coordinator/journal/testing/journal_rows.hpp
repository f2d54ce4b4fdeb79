// Rows for the file of a journal, and the errors of opening it.
#pragma once

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "server/coordinator/journal/journal_file.hpp"

namespace chorus::coordinator::testing {

using Rows = std::vector<Row>;

inline Row row(int number, std::size_t bytes = 300) {
  return {Table::collectives, "c-" + std::to_string(1000 + number),
          R"({"n":")" + std::string(bytes, static_cast<char>('a' + number % 26)) + "\"}"};
}

inline std::unique_ptr<JournalFile> opened(std::string const& path) { return JournalFile::open(path).value(); }

inline Rows rows_of(std::string const& path) { return opened(path)->read().value(); }

// Returns the rows, or the error of opening or reading the file.
inline Result<Rows> taken_up(std::string const& path) {
  auto file = JournalFile::open(path);
  if (!file) return file.error();
  return (*file)->read();
}

inline Error refusal_of(std::string const& path) {
  auto const rows = taken_up(path);
  REQUIRE(rows.has_error());
  return rows.error();
}

inline bool says(Error const& error, std::string const& part) { return error.detail.find(part) != std::string::npos; }

}  // namespace chorus::coordinator::testing
