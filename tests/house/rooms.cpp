#include "tests/house/rooms.hpp"

#include <algorithm>
#include <optional>
#include <sstream>
#include <utility>

namespace chorus::house {
namespace {

struct Exception {
  std::string file, included;
  std::size_t line = 0;
  bool is_needed = false;
};

std::vector<Exception> parse(std::string_view text) {
  std::vector<Exception> exceptions;
  std::istringstream lines{std::string(text)};
  std::string line;
  for (std::size_t number = 1; std::getline(lines, line); ++number) {
    std::istringstream words(line.substr(0, line.find('#')));
    Exception exception;
    if (words >> exception.file >> exception.included) {
      exception.line = number;
      exceptions.push_back(std::move(exception));
    }
  }
  return exceptions;
}

// Position of the file's room in the module's order. Nothing: the folder is not one of the rooms.
std::optional<std::size_t> floor_of(Target const& module, std::string_view file) {
  file.remove_prefix(module.directory.size() + 1);
  auto const slash = file.find('/');
  auto const room = file.substr(0, slash);
  auto const top = module.rooms.size();
  if (room == "testing") return top;
  bool const is_beside_rooms = slash == std::string_view::npos;
  auto const found = std::find(module.rooms.begin(), module.rooms.end(), is_beside_rooms ? "." : room);
  if (found == module.rooms.end()) return is_beside_rooms ? std::optional(top) : std::nullopt;
  return static_cast<std::size_t>(found - module.rooms.begin());
}

}  // namespace

Findings check_rooms(std::vector<Target> const& targets, std::vector<Source> const& sources, std::string const& list,
                     std::string_view exceptions) {
  Findings findings;
  auto known = parse(exceptions);
  for (auto const& source : sources) {
    auto const* const module = module_of(targets, source.file);
    if (module == nullptr || module->rooms.empty() || source.file.ends_with("_test.cpp")) continue;
    auto const floor = floor_of(*module, source.file);
    if (!floor) {
      findings.push_back({source.file, 1,
                          "lies in a folder that is not in ROOMS of module " + module->name +
                              ": name the folder there, above the rooms that it includes"});
      continue;
    }
    std::istringstream lines(source.text);
    std::string line;
    for (std::size_t number = 1; std::getline(lines, line); ++number) {
      if (!line.starts_with("#include \"")) continue;
      auto const included = line.substr(10, line.find('"', 10) - 10);
      if (module_of(targets, included) != module) continue;
      auto const other = floor_of(*module, included);
      if (!other || *other <= *floor) continue;
      auto const exception = std::find_if(known.begin(), known.end(), [&](Exception const& each) {
        return each.file == source.file && each.included == included;
      });
      if (exception != known.end()) {
        exception->is_needed = true;
        continue;
      }
      findings.push_back({source.file, number,
                          "includes " + included + " of a room above (ROOMS of module " + module->name +
                              "): move what both need into a lower room"});
    }
  }
  for (auto const& exception : known)
    if (!exception.is_needed)
      findings.push_back(
          {list, exception.line,
           exception.file + " does not include " + exception.included + " from a room above: take this line out"});
  return findings;
}

}  // namespace chorus::house
