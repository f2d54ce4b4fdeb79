// A check of SQLite's write-ahead log before SQLite opens the log.
//
// SQLite reads a log up to the first frame that is not whole, and silently drops the rest. After a crash the rest is at
// most one unfinished transaction, which no caller was promised. After damage the rest may hold synced transactions.
// The frames behind the broken one tell the two cases apart.
#pragma once

#include <optional>
#include <string>

namespace chorus::coordinator {

// Returns a description of the damage; nothing if there is no log, or SQLite will read every promised transaction.
[[nodiscard]] std::optional<std::string> damage_of_log(std::string const& path);

}  // namespace chorus::coordinator
