#include "tests/house/dependencies.hpp"

#include <functional>
#include <sstream>

namespace chorus::house {
namespace {

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    auto const part = text.substr(0, text.find(separator));
    text.remove_prefix(part.size() == text.size() ? part.size() : part.size() + 1);
    if (!part.empty()) parts.emplace_back(part);
  }
  return parts;
}

bool lies_in(std::string_view file, std::string_view directory) {
  return file.starts_with(directory) && file.size() > directory.size() && file[directory.size()] == '/';
}

// Headers belong to these, and other targets may depend on them.
bool is_module(Target const& target) { return target.kind == "module" || target.kind == "support"; }

class Graph {
 public:
  explicit Graph(std::vector<Target> const& targets) {
    for (auto const& target : targets)
      if (is_module(target)) edges_[target.name] = target.dependencies;
  }

  std::set<std::string> reachable(std::vector<std::string> const& from) const {
    std::set<std::string> seen;
    std::vector<std::string> open = from;
    while (!open.empty()) {
      auto const name = open.back();
      open.pop_back();
      if (!seen.insert(name).second) continue;
      if (auto const found = edges_.find(name); found != edges_.end())
        open.insert(open.end(), found->second.begin(), found->second.end());
    }
    return seen;
  }

 private:
  std::map<std::string, std::vector<std::string>> edges_;
};

bool owns(Target const& target, std::vector<Target> const& targets, std::string const& file) {
  for (auto const& source : target.sources)
    if (target.directory + "/" + source == file) return true;
  // Headers belong to the module of their directory.
  return is_module(target) && file.ends_with(".hpp") && module_of(targets, file) == &target;
}

}  // namespace

Target const* module_of(std::vector<Target> const& targets, std::string_view file) {
  Target const* best = nullptr;
  for (auto const& target : targets)
    if (is_module(target) && lies_in(file, target.directory))
      if (best == nullptr || target.directory.size() > best->directory.size()) best = &target;
  return best;
}

std::vector<Target> parse_targets(std::string_view text) {
  std::vector<Target> targets;
  for (auto const& line : split(text, '\n')) {
    std::istringstream words(line);
    Target target;
    words >> target.kind >> target.name >> target.directory;
    for (auto* const list : {&target.dependencies, &target.sources, &target.rooms}) {
      std::string text;
      words >> text;
      if (text.size() > 2) *list = split(std::string_view(text).substr(1, text.size() - 2), ',');
    }
    targets.push_back(std::move(target));
  }
  return targets;
}

Findings check_dependencies(std::vector<Target> const& targets, std::vector<Source> const& sources) {
  Findings findings;
  Graph const graph(targets);
  for (auto const& target : targets)
    if (is_module(target) && graph.reachable(target.dependencies).contains(target.name))
      findings.push_back({target.directory + "/CMakeLists.txt", 1, "module " + target.name + " depends on itself"});

  for (auto const& source : sources) {
    for (auto const& target : targets) {
      if (!owns(target, targets, source.file)) continue;
      auto allowed = graph.reachable(target.dependencies);
      if (is_module(target)) allowed.insert(target.name);
      std::istringstream lines(source.text);
      std::string line;
      for (std::size_t number = 1; std::getline(lines, line); ++number) {
        if (!line.starts_with("#include \"")) continue;
        auto const included = line.substr(10, line.find('"', 10) - 10);
        auto const* module = module_of(targets, included);
        // A directory without a module is a folder of binaries and tests: they may include their own neighbours only.
        bool const neighbour = lies_in(included, target.directory) || included.starts_with("tests/support/");
        if (module == nullptr ? neighbour : allowed.contains(module->name)) continue;
        findings.push_back({source.file, number,
                            "target " + target.name + " includes " + included + " of " +
                                (module ? "module " + module->name : std::string("no module")) +
                                ", which its DEPS do not reach: include something else, or state the dependency if the "
                                "house plan (README.md, architecture) allows it"});
      }
    }
  }
  return findings;
}

}  // namespace chorus::house
