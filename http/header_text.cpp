#include "http/header_text.hpp"

namespace chorus::http {

void append_field(std::string& head, std::string_view name, std::string_view value) {
  head += name;
  head += ": ";
  for (char c : value) head += c == '\r' || c == '\n' || c == '\0' ? ' ' : c;
  head += "\r\n";
}

}  // namespace chorus::http
