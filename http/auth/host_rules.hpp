// Decides which host names this service answers to, and which web pages may call it.
//
// A hostile page that runs in the browser of a user inside the network can send requests to any address that this
// browser reaches. Two things give such a page away: the name that it had to use for the address (DNS rebinding), and
// its origin.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace chorus::http {

// A value.
class HostRules {
 public:
  // `names` like "chorus.example", "*.chorus.svc" for all names below it, "*" for all. Addresses, "localhost" and names
  // that end in ".localhost" are always allowed: no foreign page can have such a name.
  explicit HostRules(std::vector<std::string> names, std::vector<std::string> origins);

  void allow(std::string name);

  // Checks the value of a Host field, with or without a port.
  [[nodiscard]] bool answers_to(std::string_view host) const;

  // True if the value of an Origin field is one of `origins`, like "https://board.example".
  [[nodiscard]] bool welcomes(std::string_view origin) const;
  // True if the origin is this service itself, under the name that the client used.
  [[nodiscard]] static bool is_same(std::string_view origin, std::string_view host);

 private:
  std::vector<std::string> names_;  // lower case
  std::vector<std::string> origins_;
};

}  // namespace chorus::http
