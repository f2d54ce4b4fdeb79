#include "http/wire/header_text.hpp"

namespace chorus::http {

void append_field(std::string& head, std::string_view name, std::string_view value) {
  head += name;
  head += ": ";
  constexpr std::string_view breaks{"\r\n\0", 3};
  auto const begin = head.size();
  head += value;
  if (value.find_first_of(breaks) != std::string_view::npos)
    for (auto i = begin; i < head.size(); ++i)
      if (breaks.find(head[i]) != std::string_view::npos) head[i] = ' ';
  head += "\r\n";
}

}  // namespace chorus::http
