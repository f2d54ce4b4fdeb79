// Folders: one subject each, which a README describes.
#pragma once

#include <vector>

#include "tests/house/findings.hpp"

namespace chorus::house {

// Found are folders with too many sources beside tests (`_test`, `_for_tests`), and folders with several of them that
// have no README.md or a long one. A folder `testing` needs none if the README beside it mentions it.
Findings check_folders(std::vector<Source> const& sources, std::vector<Source> const& readmes);

}  // namespace chorus::house
