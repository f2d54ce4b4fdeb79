#include "base/logging/log.hpp"

#include <spdlog/formatter.h>
#include <spdlog/pattern_formatter.h>

#include <array>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <memory>

#include "base/printable.hpp"

namespace chorus::logging {
namespace {

// spdlog carries text only. These marks separate the parts of a line: text, event, and name and value of each field;
// a number begins with number_mark. No part contains control characters.
constexpr char part_mark = '\x1e';
constexpr char number_mark = '\x1f';

std::string without_marks(std::string_view text) {
  std::string clean(text);
  for (auto& c : clean)
    if (c == part_mark || c == number_mark) c = ' ';
  return clean;
}

std::string number_text(double number) {
  std::array<char, 32> text{};
  auto const size = std::snprintf(text.data(), text.size(), "%.6g", number);
  return {text.data(), static_cast<std::size_t>(size)};
}

bool is_left_out(Field const& field) {
  auto const* text = std::get_if<std::string>(&field.value);
  return text != nullptr && text->empty();
}

struct Part {
  std::string_view name, value;
  bool is_number = false;
};

struct Line {
  std::string_view text, event;
  std::vector<Part> fields;
};

Line parse(std::string_view payload) {
  auto const next = [&payload] {
    auto const end = payload.find(part_mark);
    auto const part = payload.substr(0, end);
    payload = end == std::string_view::npos ? std::string_view() : payload.substr(end + 1);
    return part;
  };
  Line line;
  line.text = next();
  line.event = next();
  while (!payload.empty()) {
    Part part;
    part.name = next();
    part.value = next();
    part.is_number = part.value.starts_with(number_mark);
    if (part.is_number) part.value.remove_prefix(1);
    line.fields.push_back(part);
  }
  return line;
}

std::string timestamp(spdlog::log_clock::time_point time) {
  auto const us = std::chrono::duration_cast<std::chrono::microseconds>(time.time_since_epoch()).count();
  auto const seconds = static_cast<std::time_t>(us / 1000000);
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  std::array<char, 48> text{};
  auto const size =
      std::snprintf(text.data(), text.size(), "%04d-%02d-%02dT%02d:%02d:%02d.%06dZ", utc.tm_year + 1900, utc.tm_mon + 1,
                    utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec, static_cast<int>(us % 1000000));
  return {text.data(), static_cast<std::size_t>(size)};
}

void put(boost::json::object& object, Field const& field) {
  std::visit([&](auto const& value) { object[field.name] = value; }, field.value);
}

class Formatter final : public spdlog::formatter {
 public:
  Formatter(Format format, std::vector<Field> always) : format_(format), always_(std::move(always)) {}

  void format(spdlog::details::log_msg const& message, spdlog::memory_buf_t& to) override {
    auto const line = parse({message.payload.data(), message.payload.size()});
    format_ == Format::json ? as_json(message, line, to) : as_text(message, line, to);
  }

  [[nodiscard]] std::unique_ptr<spdlog::formatter> clone() const override {
    return std::make_unique<Formatter>(format_, always_);
  }

 private:
  void as_text(spdlog::details::log_msg const& message, Line const& line, spdlog::memory_buf_t& to) {
    std::string text(line.text);
    for (auto const& field : line.fields) (((text += ' ') += field.name) += '=') += field.value;
    auto shown = message;
    // One event is one line, even if text from outside contains line breaks.
    text = http::printable(text);
    shown.payload = text;
    pattern_.format(shown, to);
  }

  void as_json(spdlog::details::log_msg const& message, Line const& line, spdlog::memory_buf_t& to) const {
    boost::json::object object;
    object["ts"] = timestamp(message.time);
    auto const level = spdlog::level::to_string_view(message.level);
    object["level"] = boost::json::string_view(level.data(), level.size());
    auto const service = boost::json::string_view(message.logger_name.data(), message.logger_name.size());
    object["service"] = service;
    object["event"] = line.event.empty() ? boost::json::string("log") : boost::json::string(line.event);
    for (auto const& field : always_) put(object, field);
    for (auto const& [name, value, is_number] : line.fields) {
      boost::system::error_code error;
      auto number = is_number ? boost::json::parse(value, error) : boost::json::value();
      if (is_number && !error)
        object[name] = std::move(number);
      else
        object[name] = value;
    }
    object["message"] = line.text;
    auto const text = boost::json::serialize(object) + '\n';
    to.append(text.data(), text.data() + text.size());
  }

  Format const format_;
  std::vector<Field> const always_;
  spdlog::pattern_formatter pattern_;
};

}  // namespace

std::optional<Format> parse_format(std::string_view name) {
  if (name == "text") return Format::text;
  if (name == "json") return Format::json;
  return std::nullopt;
}

void configure(spdlog::logger& log, Format format, std::vector<Field> always) {
  log.set_formatter(std::make_unique<Formatter>(format, std::move(always)));
}

void write(spdlog::logger& log, spdlog::level::level_enum level, std::string_view event, std::string_view text,
           std::vector<Field> const& fields) {
  if (!log.should_log(level)) return;
  auto line = without_marks(text);
  (line += part_mark) += event;
  for (auto const& field : fields) {
    if (is_left_out(field)) continue;
    ((line += part_mark) += field.name) += part_mark;
    if (auto const* value = std::get_if<std::string>(&field.value))
      line += without_marks(*value);
    else if (auto const* number = std::get_if<std::uint64_t>(&field.value))
      (line += number_mark) += std::to_string(*number);
    else
      (line += number_mark) += number_text(std::get<double>(field.value));
  }
  log.log(level, line);
}

}  // namespace chorus::logging
