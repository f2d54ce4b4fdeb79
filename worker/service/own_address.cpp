#include "worker/service/own_address.hpp"

#include <algorithm>

#include "worker/service/requests/identity.hpp"

namespace chorus::service {
namespace {

bool is_wildcard(std::string const& host) { return host == "0.0.0.0" || host == "::"; }

}  // namespace

std::string bound_url(WorkerOptions const& options, std::string_view scheme, std::uint16_t port) {
  auto const& host = is_wildcard(options.host) ? options.host_name : options.host;
  bool const is_ipv6 = host.find(':') != std::string::npos && !host.starts_with('[');
  return std::string(scheme) + "://" + (is_ipv6 ? '[' + host + ']' : host) + ":" + std::to_string(port);
}

std::string default_worker_id(std::string host_name, std::uint16_t port) {
  host_name.resize(std::min<std::size_t>(host_name.size(), 58));
  for (auto& c : host_name)
    if (!is_id_character(c)) c = '-';
  return (host_name.empty() ? "worker" : host_name) + "-" + std::to_string(port);
}

}  // namespace chorus::service
