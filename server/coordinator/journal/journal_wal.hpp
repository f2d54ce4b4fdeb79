// A look at SQLite's write-ahead log before SQLite opens it.
//
// SQLite reads a log up to the first frame that is not whole, and drops the rest without a word. After a crash that is
// right: the rest is at most the one transaction that was being written, which nobody had been promised. After damage
// it is not: transactions that were synced would be forgotten. The two are told apart by what follows the broken frame.
#pragma once

#include <optional>
#include <string>

namespace chorus::coordinator {

// What is wrong with the log, for people; nothing if there is none, or SQLite will read all that was ever promised.
[[nodiscard]] std::optional<std::string> damage_of_log(std::string const& path);

}  // namespace chorus::coordinator
