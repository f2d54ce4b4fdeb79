#include "worker/bench/options.hpp"

#include <charconv>

namespace chorus::bench {
namespace {

constexpr std::uint64_t size_max = std::uint64_t{1} << 40;

Error bad_size(std::string_view part) {
  return {std::make_error_code(std::errc::invalid_argument),
          "'" + std::string(part) + "' is not a size from 1 byte to 1T, like 4, 1K, 64M or 1G"};
}

Result<std::uint64_t> parse_size(std::string_view part) {
  std::uint64_t number = 0;
  auto const [rest, error] = std::from_chars(part.data(), part.data() + part.size(), number);
  std::string_view const unit(rest, static_cast<std::size_t>(part.data() + part.size() - rest));
  unsigned shift = 0;
  if (unit == "K")
    shift = 10;
  else if (unit == "M")
    shift = 20;
  else if (unit == "G")
    shift = 30;
  else if (!unit.empty())
    return bad_size(part);
  if (error != std::errc() || number == 0 || number > size_max >> shift) return bad_size(part);
  return number << shift;
}

}  // namespace

Result<std::vector<std::uint64_t>> parse_sizes(std::string_view text) {
  std::vector<std::uint64_t> sizes;
  while (true) {
    auto const comma = text.find(',');
    auto const size = parse_size(text.substr(0, comma));
    if (size.has_error()) return size.error();
    sizes.push_back(*size);
    if (comma == std::string_view::npos) return sizes;
    text.remove_prefix(comma + 1);
  }
}

std::string readable_size(std::uint64_t bytes) {
  constexpr std::string_view units[] = {"B", "KiB", "MiB", "GiB"};
  std::size_t unit = 0;
  while (unit + 1 < std::size(units) && bytes != 0 && bytes % 1024 == 0) {
    bytes /= 1024;
    ++unit;
  }
  return std::to_string(bytes) + " " + std::string(units[unit]);
}

}  // namespace chorus::bench
