// Roles and callers. A role includes those before it: a token with the role join may also submit and read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace chorus::http {

// The role that a route requires of its caller, or that a token gives.
enum class Access : std::uint8_t {
  open,    // anybody: probes, and pages that say nothing about this service
  read,    // look at everything
  submit,  // launch collectives, make groups, write tensors and parameters
  join,    // be a part of the service: workers, the coordinator
  admin,   // everything
};
[[nodiscard]] std::string_view name(Access access);
// Reads a role from text. "open" is not a role.
[[nodiscard]] std::optional<Access> parse_role(std::string_view name);

// True for the pattern of a route by which probes ask for health.
[[nodiscard]] bool is_health(std::string_view pattern);

// The sender of a request. Without authentication every caller may do everything.
struct Caller {
  std::string token;  // id of the token; "" without authentication, or without a token
  Access role = Access::admin;
  // DNS names and addresses in the certificate that the client has proved to own, if it has shown one.
  std::optional<std::vector<std::string>> certificate_names;

  [[nodiscard]] bool may(Access access) const { return role >= access; }
};

}  // namespace chorus::http
