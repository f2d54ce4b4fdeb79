#include "base/usage_text.hpp"

namespace chorus::http {
namespace {

std::string reworded(std::string_view line) {
  constexpr std::string_view repeated = ": At Most 1 required but received ", valueless = ": 1 required ";
  constexpr std::string_view missing = " missing", unreadable = "Could not convert: ", is = " = ";
  if (auto const end = line.find(repeated); end != std::string_view::npos)
    return std::string(line.substr(0, end)) + " is given " + std::string(line.substr(end + repeated.size())) +
           " times, expected once";
  if (auto const end = line.find(valueless); end != std::string_view::npos && line.ends_with(missing))
    return std::string(line.substr(0, end)) + " needs a value";
  if (auto const end = line.find(is); line.starts_with(unreadable) && end != std::string_view::npos)
    return std::string(line.substr(unreadable.size(), end - unreadable.size())) + ": '" +
           std::string(line.substr(end + is.size())) + "' is not a valid value";
  return std::string(line);
}

}  // namespace

std::string usage_text(std::string_view text) {
  auto const line = text.substr(0, text.find('\n'));
  return reworded(line) + std::string(text.substr(line.size()));
}

}  // namespace chorus::http
