// The folders within a module: rooms in an order, each of which may include those before it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tests/house/dependencies.hpp"
#include "tests/house/findings.hpp"

namespace chorus::house {

// For modules that name their ROOMS. Files beside the rooms are above all rooms, or where the order has `.`. Those in a
// folder `testing` may include all rooms; tests may include what they like. `exceptions`, the text of `list`: lines of
// a file and what it includes from a room above; `#` begins a comment. Also found: a folder that is not in ROOMS, and a
// line of the list that nothing needs.
Findings check_rooms(std::vector<Target> const& targets, std::vector<Source> const& sources, std::string const& list,
                     std::string_view exceptions);

}  // namespace chorus::house
