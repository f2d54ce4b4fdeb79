// What can be wrong with a journal.
#pragma once

#include <system_error>

namespace chorus::coordinator {

enum class JournalErrc {
  not_a_journal = 1,  // a directory, a text file, another program's database
  damaged,            // truncated, or bits have changed
  newer,              // of a schema that this release does not know
  in_use,             // another coordinator has it open
  not_empty,          // rows are imported into an empty store only
  not_there,          // there is no journal to export
  cannot_write,       // read-only, no such directory, disk full, I/O error
};

[[nodiscard]] std::error_category const& journal_category();
[[nodiscard]] inline std::error_code make_error_code(JournalErrc e) {
  return {static_cast<int>(e), journal_category()};
}

}  // namespace chorus::coordinator

template <>
struct std::is_error_code_enum<chorus::coordinator::JournalErrc> : std::true_type {};
