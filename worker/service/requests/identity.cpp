#include "worker/service/requests/identity.hpp"

#include <algorithm>

#include "http/client/client.hpp"
#include "http/wire/errc.hpp"

namespace chorus::service {

bool is_id_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
}

bool is_valid_worker_id(std::string_view id) {
  return !id.empty() && id.size() <= 64 && id != "." && id != ".." &&
         std::all_of(id.begin(), id.end(), is_id_character);
}

Result<std::string> advertised_url(std::string_view advertise, std::string_view scheme, std::uint16_t bound_port) {
  auto const bad = [advertise] {
    return Error(http::HttpErrc::bad_url, "'" + std::string(advertise) + "' is not HOST or HOST:PORT");
  };
  auto const is_allowed = [](char c) { return std::string_view(":[]").find(c) != std::string_view::npos; };
  for (char const c : advertise)
    if (!is_allowed(c) && !is_id_character(c)) return bad();
  bool const is_bare_ipv6 = !advertise.starts_with('[') && std::count(advertise.begin(), advertise.end(), ':') > 1;
  auto url = std::string(scheme) + "://" + (is_bare_ipv6 ? '[' + std::string(advertise) + ']' : std::string(advertise));
  bool const has_port = !is_bare_ipv6 && advertise.rfind(':') != std::string_view::npos &&
                        (advertise.find(']') == std::string_view::npos || advertise.rfind(':') > advertise.find(']'));
  if (!has_port) url += ':' + std::to_string(bound_port);
  if (http::parse_url(url).has_error()) return bad();
  return url;
}

}  // namespace chorus::service
