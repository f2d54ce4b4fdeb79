#include "server/cli/text/units.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "server/cli/text/errc.hpp"

namespace chorus::cli {
namespace {

struct Quantity {
  std::uint64_t number;
  std::string_view unit;
};

// Returns the leading digits and the rest; empty if there are no digits or too many.
std::optional<Quantity> split_quantity(std::string_view text) {
  Quantity quantity{};
  auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), quantity.number);
  if (error != std::errc()) return std::nullopt;
  quantity.unit = text.substr(static_cast<std::size_t>(end - text.data()));
  return quantity;
}

std::optional<unsigned> shift_of(std::string_view unit) {
  if (unit.empty()) return 0;
  if (unit == "K") return 10;
  if (unit == "M") return 20;
  if (unit == "G") return 30;
  if (unit == "T") return 40;
  return std::nullopt;
}

std::optional<std::uint64_t> milliseconds_of(std::string_view unit) {
  if (unit == "ms") return 1;
  if (unit == "s") return 1000;
  if (unit == "m") return 60 * 1000;
  if (unit == "h") return 60 * 60 * 1000;
  return std::nullopt;
}

Error bad_value(std::string_view text, std::string_view wanted) {
  return {CliErrc::bad_value, "'" + std::string(text) + "' is not " + std::string(wanted)};
}

// Writes at most three digits before the point, and one behind it unless it is zero.
std::string short_number(double value) {
  auto const rounded = std::round(value * 10) / 10;
  return format_decimal(rounded, rounded == std::floor(rounded) || rounded >= 100 ? 0 : 1);
}

// Divides until the number is readable; a value that would round up to one of the next unit is shown in that unit.
template <std::size_t N>
std::string scaled(double value, double step, std::array<std::string_view, N> const& units) {
  std::size_t unit = 0;
  while (unit + 1 < N && std::round(value * 10) / 10 >= step) {
    value /= step;
    ++unit;
  }
  return short_number(value) + " " + std::string(units[unit]);
}

}  // namespace

Result<std::uint64_t> parse_number(std::string_view text, std::uint64_t low, std::uint64_t high) {
  auto const quantity = split_quantity(text);
  if (!quantity || !quantity->unit.empty() || quantity->number < low || quantity->number > high)
    return bad_value(text, "a whole number from " + std::to_string(low) + " to " + std::to_string(high));
  return quantity->number;
}

Result<std::uint64_t> parse_bytes(std::string_view text) {
  constexpr auto wanted = "a size like 4, 1K, 64M or 2G";
  auto const quantity = split_quantity(text);
  if (!quantity) return bad_value(text, wanted);
  auto const shift = shift_of(quantity->unit);
  if (!shift) return bad_value(text, wanted);
  if (quantity->number > (std::numeric_limits<std::uint64_t>::max() >> *shift))
    return bad_value(text, "a size below 2^64 bytes");
  return quantity->number << *shift;
}

Result<std::chrono::milliseconds> parse_duration(std::string_view text) {
  constexpr auto wanted = "a duration like 500ms, 30s or 5m";
  auto const quantity = split_quantity(text);
  if (!quantity) return bad_value(text, wanted);
  auto const unit = milliseconds_of(quantity->unit);
  if (!unit) return bad_value(text, wanted);
  if (quantity->number > static_cast<std::uint64_t>(duration_limit.count()) / *unit)
    return bad_value(text, "a duration of 24h or less");
  return std::chrono::milliseconds(quantity->number * *unit);
}

Error empty_part(std::string_view list) {
  return {CliErrc::bad_value, "'" + std::string(list.substr(0, 80)) + "' is a list with an empty part"};
}

std::string format_bytes(std::uint64_t bytes) {
  constexpr std::array<std::string_view, 7> units{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  return scaled(static_cast<double>(bytes), 1024, units);
}

std::string format_seconds(double seconds) {
  if (seconds < 1) {
    constexpr std::array<std::string_view, 4> units{"ns", "us", "ms", "s"};
    return scaled(seconds * 1e9, 1000, units);
  }
  if (seconds < 120) return format_decimal(seconds, 2) + " s";
  auto const whole = static_cast<std::uint64_t>(std::llround(seconds));
  return std::to_string(whole / 60) + " min " + std::to_string(whole % 60) + " s";
}

std::string format_rate(double bytes_per_second) {
  constexpr std::array<std::string_view, 5> units{"B/s", "kB/s", "MB/s", "GB/s", "TB/s"};
  return scaled(bytes_per_second, 1000, units);
}

std::string format_decimal(double value, int digits) {
  std::array<char, 400> text;  // the longest double in fixed notation has 309 digits before the point
  auto const end = std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed, digits).ptr;
  return {text.data(), end};
}

std::string format_count(std::size_t count, std::string_view singular) {
  return std::to_string(count) + " " + std::string(singular) + (count == 1 ? "" : "s");
}

}  // namespace chorus::cli
