// Makes the metric families of this process, with the names that Prometheus clients of every language use. Private to
// metrics/.
#pragma once

#include "metrics/families/families.hpp"

namespace chorus::metrics {

// Reads /proc and the system's limits at every call. A value that cannot be read has no family.
[[nodiscard]] Families process_families();

}  // namespace chorus::metrics
