#include "worker/parameters/checkpoints/leftovers.hpp"

#include <algorithm>

#include "worker/parameters/checkpoints/layout.hpp"

namespace chorus::checkpoints {
namespace {

bool is_temporary(std::string const& name) { return name.ends_with(temporary_suffix); }

// Removes the abandoned temporary files of a checkpoint; files being written are open in a process. Returns the names
// of the remaining files.
Result<std::vector<std::string>> remove_abandoned_in(Files& files, std::string const& own) {
  auto names = files.list(own);
  if (names.has_error()) return names.error();
  std::erase_if(*names, [&](std::string const& name) {
    if (!is_temporary(name)) return false;
    auto const removed = files.remove_abandoned(join(own, name));
    return removed.has_error() ? is_missing(removed.error()) : *removed;
  });
  return names;
}

Status remove_uncommitted(Files& files, std::string const& own) {
  auto const names = remove_abandoned_in(files, own);
  if (names.has_error()) return names.error();
  if (std::ranges::any_of(*names, is_temporary)) return ok();
  for (auto const& name : *names)
    if (auto const removed = files.remove(join(own, name)); removed.has_error()) return removed;
  return files.remove_directory(own);
}

}  // namespace

Status discard_file(Files& files, std::string const& directory, std::uint64_t number, std::string const& name) {
  auto const own = join(directory, directory_name(number));
  auto const committed = is_committed(files, own);
  if (committed.has_error()) return committed.error();
  if (*committed) return ok();
  auto const path = join(own, name + ".safetensors");
  auto const temporary = path + std::string(temporary_suffix);
  if (auto const removed = files.remove_abandoned(temporary); removed.has_error() && !is_missing(removed.error()))
    return removed.error();
  if (auto const removed = files.remove(path); removed.has_error() && !is_missing(removed.error()))
    return removed.error();
  remove_if_empty(files, own);
  remove_if_empty(files, directory);
  return ok();
}

Status remove_leftovers(Files& files, std::string const& directory) {
  auto const numbers = list_numbers(files, directory);
  if (numbers.has_error()) return numbers.error();
  for (auto const number : *numbers) {
    auto const own = join(directory, directory_name(number));
    auto const committed = is_committed(files, own);
    if (committed.has_error()) return committed.error();
    if (*committed) continue;
    if (auto const removed = remove_uncommitted(files, own); removed.has_error()) return removed;
  }
  return ok();
}

void sweep(Files& files, std::string const& root) {
  auto const names = files.list(root);
  if (names.has_error()) return;
  for (auto const& name : *names) {
    auto const directory = join(root, name);
    auto const numbers = list_numbers(files, directory);
    if (numbers.has_error()) continue;
    for (auto const number : *numbers) {
      auto const own = join(directory, directory_name(number));
      auto const left = remove_abandoned_in(files, own);
      if (left.has_value() && left->empty()) static_cast<void>(files.remove_directory(own));
    }
    if (!numbers->empty()) remove_if_empty(files, directory);
  }
}

}  // namespace chorus::checkpoints
