// What log lines about a collective have in common.
#pragma once

#include <vector>

#include "http/api/collectives.hpp"
#include "http/logging/log.hpp"

namespace chorus::coordinator {

// collective, run, group, epoch, trace_id
[[nodiscard]] std::vector<logging::Field> fields_of(api::Collective const& view);

}  // namespace chorus::coordinator
