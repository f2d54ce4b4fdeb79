// Which names this service answers to, and which web pages may speak to it.
//
// A page of a stranger that runs in the browser of somebody inside may send requests to any address that this browser
// reaches. Two things give it away: the name that it had to use for the address (DNS rebinding) and its origin.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace chorus::http {

// A value.
class HostRules {
 public:
  // Names like "chorus.example", "*.chorus.svc" for all below it, "*" for all. Addresses, "localhost" and what ends in
  // ".localhost" are always allowed: nobody else's page can have such a name.
  explicit HostRules(std::vector<std::string> names, std::vector<std::string> origins);

  void allow(std::string name);

  // The value of a Host field, with or without a port.
  [[nodiscard]] bool answers_to(std::string_view host) const;

  // The value of an Origin field is one of `origins`, like "https://board.example".
  [[nodiscard]] bool welcomes(std::string_view origin) const;
  // The origin is this service itself, as the client calls it.
  [[nodiscard]] static bool is_same(std::string_view origin, std::string_view host);

 private:
  std::vector<std::string> names_;  // lower case
  std::vector<std::string> origins_;
};

}  // namespace chorus::http
