#include "http/message/idempotency_key.hpp"

#include <algorithm>

namespace chorus::http {

Checked<std::optional<std::string>> idempotency_key(Fields const& fields) {
  constexpr std::size_t longest = 255;
  auto const is_printable = [](char c) { return static_cast<unsigned char>(c) >= 0x20 && c != 0x7f; };
  auto const count = fields.count("Idempotency-Key");
  if (count == 0) return std::optional<std::string>();
  auto const value = *fields.find("Idempotency-Key");
  if (count > 1 || value.empty() || value.size() > longest || !std::ranges::all_of(value, is_printable))
    return Problem(ProblemCode::bad_request, "Idempotency-Key: expected one field of 1 to 255 printable characters");
  return std::optional<std::string>(value);
}

Problem idempotency_reused(std::string_view what) {
  return {ProblemCode::idempotency_reused, "the Idempotency-Key was used with another body, for " + std::string(what)};
}

}  // namespace chorus::http
