// Errors of a journal.
#pragma once

#include <system_error>

namespace chorus::coordinator {

enum class JournalErrc {
  not_a_journal = 1,  // a directory, a text file, a database of another program
  damaged,            // truncated, or with changed bits
  newer,              // of a schema that this release does not support
  in_use,             // opened by another coordinator
  not_empty,          // the store that rows are imported into has rows
  not_there,          // no journal to export
  cannot_write,       // read-only, no such directory, disk full, I/O error
};

[[nodiscard]] std::error_category const& journal_category();
[[nodiscard]] inline std::error_code make_error_code(JournalErrc e) {
  return {static_cast<int>(e), journal_category()};
}

}  // namespace chorus::coordinator

template <>
struct std::is_error_code_enum<chorus::coordinator::JournalErrc> : std::true_type {};
