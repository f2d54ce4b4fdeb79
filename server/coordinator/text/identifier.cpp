#include "server/coordinator/text/identifier.hpp"

#include <algorithm>

namespace chorus::coordinator {
namespace {

bool is_identifier_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
}

bool is_printable(char c) { return static_cast<unsigned char>(c) >= 0x20 && c != 0x7f; }

}  // namespace

bool is_identifier(std::string_view text) {
  return !text.empty() && text.size() <= 64 && text != "." && text != ".." &&
         std::ranges::all_of(text, is_identifier_character);
}

bool is_showable(std::string_view text, std::size_t limit) {
  return text.size() <= limit && std::ranges::all_of(text, is_printable);
}

std::string on_one_line(std::string text) {
  for (char& c : text)
    if (!is_printable(c)) c = ' ';
  return text;
}

http::Problem not_an_identifier(std::string_view what, std::string_view text, std::string_view pointer) {
  auto const shown =
      is_showable(text, 64) ? "'" + std::string(text) + "'" : "of " + std::to_string(text.size()) + " bytes";
  return invalid_field(std::string(pointer), "the " + std::string(what) + " " + shown +
                                                 " is not 1 to 64 letters, digits, dots, underscores and hyphens");
}

http::Problem invalid_field(std::string pointer, std::string detail) {
  http::Problem problem(http::ProblemCode::invalid_field, detail);
  problem.errors.push_back({std::move(pointer), std::move(detail)});
  return problem;
}

std::string quoted(std::string_view text) {
  return is_showable(text, 64) ? "'" + std::string(text) + "'" : "of " + std::to_string(text.size()) + " bytes";
}

}  // namespace chorus::coordinator
