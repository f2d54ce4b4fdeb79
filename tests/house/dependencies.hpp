// Holds the includes of every target against the dependencies that its CMake target states.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tests/house/findings.hpp"

namespace chorus::house {

struct Target {
  std::string kind;  // module, support, tests, binary
  std::string name;
  std::string directory;
  std::vector<std::string> dependencies;
  std::vector<std::string> sources;  // relative to directory, or absolute (then of another room and not checked)
  std::vector<std::string> rooms;    // folders of the directory, each of which may include those before it; `.`: itself
};

// Reads the lines that chorus_module, chorus_test_support, chorus_tests and chorus_binary record.
std::vector<Target> parse_targets(std::string_view text);

// The module, or support of tests, that has the longest directory around the file; null: there is none.
[[nodiscard]] Target const* module_of(std::vector<Target> const& targets, std::string_view file);

// A file may include its own module and what is reachable through the target's DEPS. Also found: a cycle between
// modules.
Findings check_dependencies(std::vector<Target> const& targets, std::vector<Source> const& sources);

}  // namespace chorus::house
