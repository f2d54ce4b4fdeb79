// The log of the services on standard error: lines for people, or one JSON object per line for collectors of logs.
//
// A structured line names the event (`event`) and its objects (fields); docs/reference/logs.md lists both.
#pragma once

#include <spdlog/common.h>
#include <spdlog/logger.h>

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace chorus::logging {

enum class Format : std::uint8_t { text, json };
[[nodiscard]] std::optional<Format> parse_format(std::string_view name);

// A field whose value is empty text is not written.
struct Field {
  Field(std::string_view n, std::string v) : name(n), value(std::move(v)) {}
  Field(std::string_view n, std::string_view v) : name(n), value(std::string(v)) {}
  Field(std::string_view n, char const* v) : name(n), value(std::string(v)) {}
  Field(std::string_view n, double v) : name(n), value(v) {}
  template <std::unsigned_integral Number>
  Field(std::string_view n, Number v) : name(n), value(std::uint64_t{v}) {}

  std::string name;
  std::variant<std::string, std::uint64_t, double> value;
};

// Sets the format of the logger's lines; the fields `always` are in each line. Thread-safe if the sinks are.
void configure(spdlog::logger& log, Format format, std::vector<Field> always = {});

// Text: "text run=7 group=g". JSON: {"ts":..,"level":..,"service":..,"event":..,"run":7,"group":"g","message":"text"}.
void write(spdlog::logger& log, spdlog::level::level_enum level, std::string_view event, std::string_view text,
           std::vector<Field> const& fields);

inline void info(spdlog::logger& log, std::string_view event, std::string_view text, std::vector<Field> const& fields) {
  write(log, spdlog::level::info, event, text, fields);
}
inline void warn(spdlog::logger& log, std::string_view event, std::string_view text, std::vector<Field> const& fields) {
  write(log, spdlog::level::warn, event, text, fields);
}

}  // namespace chorus::logging
