// Reads and writes numbers with units.
//
// Reads sizes "4", "1K", "64M", "2G" (powers of 1024) and durations "500ms", "30s", "5m". Writes amounts as "64 MiB"
// (powers of 1024), rates as "3.2 GB/s" (powers of 1000, as for network speeds) and durations as "1.9 ms".
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "collectives/core/result.hpp"

namespace chorus::cli {

inline constexpr std::chrono::milliseconds duration_limit = std::chrono::hours(24);

[[nodiscard]] Error empty_part(std::string_view list);  // the error of parse_list

// Errors: CliErrc::bad_value, with the text and the expected form.
[[nodiscard]] Result<std::uint64_t> parse_number(std::string_view text, std::uint64_t low, std::uint64_t high);
[[nodiscard]] Result<std::uint64_t> parse_bytes(std::string_view text);
[[nodiscard]] Result<std::chrono::milliseconds> parse_duration(std::string_view text);  // 0 to duration_limit

// Reads at least one part, with commas between them. Errors: CliErrc::bad_value for an empty part; that of `parse`,
// which takes a string_view, for any other.
template <class Parse>
[[nodiscard]] auto parse_list(std::string_view text, Parse parse) {
  using Parts = std::vector<std::decay_t<decltype(*parse(text))>>;
  Parts parts;
  for (auto rest = text;;) {
    auto const comma = rest.find(',');
    auto const word = rest.substr(0, comma);
    if (word.empty()) return Result<Parts>(empty_part(text));
    auto part = parse(word);
    if (!part) return Result<Parts>(part.error());
    parts.push_back(std::move(*part));
    if (comma == std::string_view::npos) return Result<Parts>(std::move(parts));
    rest.remove_prefix(comma + 1);
  }
}

// Writes at most three digits with a unit: "0 B", "1023 B", "1 KiB", "1.5 MiB".
[[nodiscard]] std::string format_bytes(std::uint64_t bytes);
[[nodiscard]] std::string format_seconds(double seconds);  // "850 ns", "12.5 us", "1.9 ms", "2.35 s", "3 min 20 s"
[[nodiscard]] std::string format_rate(double bytes_per_second);  // "3.2 GB/s"
[[nodiscard]] std::string format_decimal(double value, int digits);
[[nodiscard]] std::string format_count(std::size_t count, std::string_view singular);  // "1 group", "2 groups"

}  // namespace chorus::cli
