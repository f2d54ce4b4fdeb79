// What the checks of the house report: a file, a line, and what to do instead.
#pragma once

#include <string>
#include <vector>

namespace chorus::house {

struct Finding {
  std::string file;
  std::size_t line = 0;
  std::string what;
};
using Findings = std::vector<Finding>;

struct Source {
  std::string file;  // relative to the root
  std::string text;
};

}  // namespace chorus::house
