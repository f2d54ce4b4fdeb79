// Moves rows out of a store that no coordinator uses, and into an empty store.
#pragma once

#include "server/coordinator/stores/exported_rows.hpp"
#include "server/coordinator/stores/store_flags.hpp"

namespace chorus::coordinator {

// Returns all rows. Holds the store meanwhile: a coordinator that starts on it is refused, or stands by. Blocks.
// Errors: JournalErrc, also not_there; EtcdErrc, also unknown_cluster, and not_leader, which names the leading
// coordinator.
[[nodiscard]] Result<ExportedRows> take_rows(StoreOptions const& from);

// Writes all rows or none. `new_cluster_id`: that of Election. Errors: JournalErrc, also not_empty, and damaged for
// rows that no coordinator can start with; EtcdErrc, also wrong_cluster, and not_leader, which names the leading
// coordinator.
[[nodiscard]] Status put_rows(ExportedRows const& exported, StoreOptions const& to, std::uint64_t new_cluster_id);

}  // namespace chorus::coordinator
