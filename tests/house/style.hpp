// The ban-list: what this code base does not do, each with what it does instead.
#pragma once

#include <vector>

#include "tests/house/findings.hpp"

namespace chorus::house {

Findings check_style(std::vector<Source> const& sources);

}  // namespace chorus::house
