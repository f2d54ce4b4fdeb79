// check-house ROOT DEPENDENCIES: prints every finding and exits 1 if there is one.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/house/dependencies.hpp"
#include "tests/house/folders.hpp"
#include "tests/house/rooms.hpp"
#include "tests/house/style.hpp"

namespace {

std::string read(std::filesystem::path const& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

struct House {
  std::vector<chorus::house::Source> sources, readmes;
};

House read_house(std::filesystem::path const& root) {
  House house;
  for (auto const* room :
       {"collectives", "base", "metrics", "http", "worker", "library", "server", "examples", "tests", "cmake"})
    for (auto const& entry : std::filesystem::recursive_directory_iterator(root / room)) {
      if (!entry.is_regular_file()) continue;
      auto const extension = entry.path().extension();
      bool const is_source = extension == ".hpp" || extension == ".cpp" || extension == ".inc" || extension == ".cu" ||
                             extension == ".cuh" || extension == ".h";
      if (!is_source && entry.path().filename() != "README.md") continue;
      auto& files = is_source ? house.sources : house.readmes;
      files.push_back({std::filesystem::relative(entry.path(), root).string(), read(entry.path())});
    }
  return house;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fputs("usage: check-house ROOT DEPENDENCIES\n", stderr);
    return 2;
  }
  std::filesystem::path const root = argv[1];
  auto const [sources, readmes] = read_house(root);
  auto const targets = chorus::house::parse_targets(read(argv[2]));
  auto findings = chorus::house::check_dependencies(targets, sources);
  std::string const upwards = "tests/house/upward_includes.txt";
  for (auto& finding : chorus::house::check_rooms(targets, sources, upwards, read(root / upwards)))
    findings.push_back(std::move(finding));
  for (auto& finding : chorus::house::check_folders(sources, readmes)) findings.push_back(std::move(finding));
  for (auto& finding : chorus::house::check_style(sources)) findings.push_back(std::move(finding));
  for (auto const& finding : findings)
    std::fprintf(stderr, "%s:%zu: %s\n", finding.file.c_str(), finding.line, finding.what.c_str());
  if (findings.empty()) std::printf("house: %zu files, nothing found\n", sources.size());
  return findings.empty() ? 0 : 1;
}
