#include "tests/house/folders.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>

namespace chorus::house {
namespace {

constexpr std::size_t source_limit = 24;
constexpr std::ptrdiff_t readme_limit = 15;

std::string folder_of(std::string_view file) { return std::string(file.substr(0, file.rfind('/'))); }

bool is_for_tests(std::string_view file) {
  auto const name = file.substr(0, file.rfind('.'));
  return name.ends_with("_test") || name.ends_with("_for_tests");
}

}  // namespace

Findings check_folders(std::vector<Source> const& sources, std::vector<Source> const& readmes) {
  std::map<std::string, std::size_t> counts;
  for (auto const& source : sources)
    if (!is_for_tests(source.file)) ++counts[folder_of(source.file)];
  std::map<std::string, std::string_view> texts;
  for (auto const& readme : readmes) texts[folder_of(readme.file)] = readme.text;

  Findings findings;
  for (auto const& [folder, count] : counts) {
    if (count > source_limit)
      findings.push_back({folder, 1,
                          "has " + std::to_string(count) + " sources besides tests, more than " +
                              std::to_string(source_limit) + ": move one subject into a folder of its own"});
    if (count < 2) continue;
    auto const file = folder + "/README.md";
    auto const text = texts.find(folder);
    if (text != texts.end()) {
      auto const lines = std::ranges::count(text->second, '\n');
      if (lines > readme_limit)
        findings.push_back(
            {file, static_cast<std::size_t>(lines),
             "more than " + std::to_string(readme_limit) + " lines: the rest belongs in docs/ or in headers"});
      continue;
    }
    auto const above = texts.find(folder_of(folder));
    if (folder.ends_with("/testing") && above != texts.end() &&
        above->second.find("testing/") != std::string_view::npos)
      continue;
    findings.push_back(
        {file, 1, "is missing: say what the folder is for, which files to read first, and what it must not know"});
  }
  return findings;
}

}  // namespace chorus::house
