// Makes docs/reference/algorithms.md: every algorithm of every operation, measured.
#pragma once

#include <string>

#include "collectives/model/constants.hpp"

namespace chorus::planning {

// Returns the page as it is committed. Steps, bytes and formulas are counted in the plans for 8 and 64 ranks; the
// winners are simulated with these constants. Takes seconds.
[[nodiscard]] std::string algorithm_page(model::Constants const& constants);

}  // namespace chorus::planning
