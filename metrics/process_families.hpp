// What the system says of this process, in the names that Prometheus clients of every language use. Private to
// metrics/.
#pragma once

#include "metrics/families.hpp"

namespace chorus::metrics {

// Read from /proc and the system's limits at every call; what cannot be read is left out.
[[nodiscard]] Families process_families();

}  // namespace chorus::metrics
