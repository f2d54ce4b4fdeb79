#include "worker/parameters/checkpoints/layout.hpp"

#include <algorithm>
#include <charconv>
#include <functional>

namespace chorus::checkpoints {
namespace {

constexpr std::string_view directory_prefix = "checkpoint-";
constexpr std::size_t digits_min = 12;  // so that names sort like numbers

std::optional<std::uint64_t> parse_number(std::string_view name) {
  if (!name.starts_with(directory_prefix)) return std::nullopt;
  auto const digits = name.substr(directory_prefix.size());
  std::uint64_t number = 0;
  auto const [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (failure != std::errc() || end != digits.data() + digits.size() || directory_name(number) != name)
    return std::nullopt;
  return number;
}

}  // namespace

std::string directory_name(std::uint64_t number) {
  auto const digits = std::to_string(number);
  auto const zeros = digits.size() < digits_min ? digits_min - digits.size() : 0;
  return std::string(directory_prefix) + std::string(zeros, '0') + digits;
}

std::string join(std::string_view directory, std::string_view name) {
  return std::string(directory) + "/" + std::string(name);
}

Status sync_entry_of(Files& files, std::string const& directory) {
  auto const slash = directory.rfind('/');
  if (slash == std::string::npos) return ok();  // of a directory that was there before
  return files.sync_directory(slash == 0 ? "/" : directory.substr(0, slash));
}

bool is_plain_name(std::string_view name) {
  auto const is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
           c == '-';
  };
  return !name.empty() && name.size() <= 200 && name.front() != '.' && std::all_of(name.begin(), name.end(), is_plain);
}

Result<std::vector<std::uint64_t>> list_numbers(Files& files, std::string const& directory) {
  auto const names = files.list(directory);
  if (names.has_error() && is_missing(names.error())) return std::vector<std::uint64_t>();
  if (names.has_error()) return names.error();
  std::vector<std::uint64_t> numbers;
  for (auto const& name : *names)
    if (auto const number = parse_number(name)) numbers.push_back(*number);
  std::sort(numbers.begin(), numbers.end(), std::greater<>());
  return numbers;
}

void remove_if_empty(Files& files, std::string const& directory) {
  auto const names = files.list(directory);
  if (names.has_value() && names->empty()) static_cast<void>(files.remove_directory(directory));
}

Result<bool> is_committed(Files& files, std::string const& checkpoint_directory) {
  auto const manifest = files.open(join(checkpoint_directory, manifest_name));
  if (manifest.has_value()) return true;
  if (is_missing(manifest.error())) return false;
  if (manifest.error().code == std::errc::invalid_argument) return true;  // it exists, but is no file
  return manifest.error();
}

}  // namespace chorus::checkpoints
