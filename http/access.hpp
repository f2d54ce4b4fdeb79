// Who may do what. A role includes those before it: whoever may join may also submit and read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace chorus::http {

// What a route asks of its caller, and what a token allows.
enum class Access : std::uint8_t {
  open,    // anybody: probes, and pages that say nothing about this service
  read,    // look at everything
  submit,  // launch collectives, make groups, write tensors and parameters
  join,    // be a part of the service: workers, the coordinator
  admin,   // everything
};
[[nodiscard]] std::string_view name(Access access);
// Of a role, so not "open".
[[nodiscard]] std::optional<Access> parse_role(std::string_view name);

// Who has sent a request. Without authentication everybody may do everything.
struct Caller {
  std::string token;  // its id; "" without authentication, or without a token
  Access role = Access::admin;
  // Of the certificate that the client has proved to own, if it has shown one: its DNS names and addresses.
  std::optional<std::vector<std::string>> certificate_names;

  [[nodiscard]] bool may(Access access) const { return role >= access; }
};

}  // namespace chorus::http
