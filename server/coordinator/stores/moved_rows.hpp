// Rows out of a store that no coordinator uses, and into an empty one.
#pragma once

#include "server/coordinator/stores/exported_rows.hpp"
#include "server/coordinator/stores/store_flags.hpp"

namespace chorus::coordinator {

// All rows. The store is held meanwhile: a coordinator that starts on it is refused, or stands by. Blocks. Errors:
// JournalErrc, also not_there; EtcdErrc, also unknown_cluster, and not_leader, which names the coordinator that leads.
[[nodiscard]] Result<ExportedRows> take_rows(StoreOptions const& from);

// Writes all rows or none. Errors: JournalErrc, also not_empty, and damaged for rows with which no coordinator would
// start; EtcdErrc, also wrong_cluster, and not_leader as above.
[[nodiscard]] Status put_rows(ExportedRows const& exported, StoreOptions const& to);

}  // namespace chorus::coordinator
