#include "http/message/message.hpp"

#include <algorithm>
#include <charconv>

#include "base/ascii.hpp"
#include "collectives/core/assert.hpp"

namespace chorus::http {

std::string_view name(Method method) {
  switch (method) {
    case Method::get:
      return "GET";
    case Method::head:
      return "HEAD";
    case Method::put:
      return "PUT";
    case Method::post:
      return "POST";
    case Method::delete_:
      return "DELETE";
    case Method::options:
      return "OPTIONS";
    case Method::other:
      break;
  }
  return "other";
}

void Fields::set(std::string name, std::string value) {
  std::erase_if(fields_, [&](auto const& field) { return equals_ignoring_case(field.first, name); });
  add(std::move(name), std::move(value));
}

void Fields::add(std::string name, std::string value) {
  constexpr std::size_t usual = 8;
  if (fields_.capacity() == 0) fields_.reserve(usual);
  fields_.emplace_back(std::move(name), std::move(value));
}

std::optional<std::string_view> Fields::find(std::string_view name) const {
  for (auto const& [key, value] : fields_)
    if (equals_ignoring_case(key, name)) return value;
  return std::nullopt;
}

std::size_t Fields::count(std::string_view name) const {
  return static_cast<std::size_t>(std::count_if(
      fields_.begin(), fields_.end(), [&](auto const& field) { return equals_ignoring_case(field.first, name); }));
}

std::string const& Request::parameter(std::string_view name) const {
  auto const found = std::find_if(parameters.begin(), parameters.end(), [&](auto const& p) { return p.first == name; });
  CHORUS_ASSERT(found != parameters.end(), "the route has no such {parameter}");
  return found->second;
}

std::optional<std::string_view> Request::query_value(std::string_view name) const {
  for (auto const& [key, value] : query)
    if (key == name) return value;
  return std::nullopt;
}

Checked<std::optional<std::uint64_t>> Request::query_number(std::string_view name, std::uint64_t limit) const {
  auto const text = query_value(name);
  if (!text) return std::optional<std::uint64_t>();
  std::uint64_t value = 0;
  auto const [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (text->empty() || error != std::errc() || end != text->data() + text->size() || value > limit)
    return Problem(ProblemCode::bad_request, "query parameter '" + std::string(name) + "' is '" + std::string(*text) +
                                                 "', expected a number from 0 to " + std::to_string(limit));
  return std::optional<std::uint64_t>(value);
}

Response::Response(Problem const& p) : status(kind(p.code).status), problem(p) {
  // A client that may retry gets the time of the retry.
  if (p.code == ProblemCode::unavailable && !p.retry_after_s) problem->retry_after_s = 1;
  body = to_json(*problem);
  fields.set("Content-Type", "application/problem+json");
  if (problem->retry_after_s) fields.set("Retry-After", std::to_string(*problem->retry_after_s));
}

Response Response::json(unsigned status, std::string body) { return text(status, std::move(body), "application/json"); }

Response Response::text(unsigned status, std::string body, std::string content_type) {
  Response response(status);
  response.fields.set("Content-Type", std::move(content_type));
  response.body = std::move(body);
  return response;
}

}  // namespace chorus::http
