#include "http/auth/host_rules.hpp"

#include <algorithm>
#include <boost/asio/ip/address.hpp>

#include "base/ascii.hpp"

namespace chorus::http {
namespace {

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(), [](char c) { return to_lower(c); });
  return result;
}

// Removes the port, the brackets of an IPv6 address, and a dot at the end.
std::string name_of(std::string_view host) {
  if (host.starts_with('[')) return std::string(host.substr(1, host.find(']') - 1));
  if (std::count(host.begin(), host.end(), ':') == 1) host = host.substr(0, host.find(':'));
  if (host.ends_with('.')) host.remove_suffix(1);
  return lower(host);
}

bool is_address(std::string const& name) {
  boost::system::error_code error;
  static_cast<void>(boost::asio::ip::make_address(name, error));
  return !error;
}

}  // namespace

HostRules::HostRules(std::vector<std::string> names, std::vector<std::string> origins) : origins_(std::move(origins)) {
  for (auto& name : names) allow(std::move(name));
}

void HostRules::allow(std::string name) { names_.push_back(name_of(name)); }

bool HostRules::answers_to(std::string_view host) const {
  auto const name = name_of(host);
  if (name == "localhost" || name.ends_with(".localhost") || is_address(name)) return true;
  return std::any_of(names_.begin(), names_.end(), [&](std::string const& allowed) {
    if (allowed == "*" || allowed == name) return true;
    return allowed.starts_with("*.") && name.size() >= allowed.size() &&
           name.ends_with(std::string_view(allowed).substr(1));
  });
}

bool HostRules::welcomes(std::string_view origin) const {
  return std::find(origins_.begin(), origins_.end(), origin) != origins_.end();
}

bool HostRules::is_same(std::string_view origin, std::string_view host) {
  auto const scheme = origin.find("://");
  return scheme != std::string_view::npos && equals_ignoring_case(origin.substr(scheme + 3), host);
}

}  // namespace chorus::http
