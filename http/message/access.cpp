#include "http/message/access.hpp"

#include <algorithm>
#include <array>

namespace chorus::http {
namespace {

constexpr std::array<std::string_view, 5> names{"open", "read", "submit", "join", "admin"};

}  // namespace

std::string_view name(Access access) { return names.at(static_cast<std::size_t>(access)); }

std::optional<Access> parse_role(std::string_view name) {
  auto const found = std::find(names.begin() + 1, names.end(), name);
  if (found == names.end()) return std::nullopt;
  return static_cast<Access>(found - names.begin());
}

bool is_health(std::string_view pattern) {
  return pattern == "/healthz" || pattern == "/livez" || pattern == "/readyz";
}

}  // namespace chorus::http
