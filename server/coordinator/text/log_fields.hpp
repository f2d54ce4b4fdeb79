// Fields that log lines about a collective have in common.
#pragma once

#include <vector>

#include "base/logging/log.hpp"
#include "http/api/collectives/collectives.hpp"

namespace chorus::coordinator {

// Fields: collective, run, group, epoch, trace_id.
[[nodiscard]] std::vector<logging::Field> fields_of(api::Collective const& view);

}  // namespace chorus::coordinator
