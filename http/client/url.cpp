#include <algorithm>
#include <boost/asio/ip/address_v6.hpp>
#include <charconv>

#include "base/ascii.hpp"
#include "base/printable.hpp"
#include "http/client/client.hpp"
#include "http/wire/errc.hpp"

namespace chorus::http {

Result<Url> parse_url(std::string_view text) {
  auto const bad = [text](std::string_view why) {
    return Error(HttpErrc::bad_url, "'" + std::string(text) + "': " + std::string(why));
  };
  // Also refuses characters that would end the request line: a URL may come from a file or from another service.
  for (char c : text)
    if (static_cast<unsigned char>(c) <= 0x20 || c == 0x7f) return bad("contains a space or control character");
  Url url;
  auto const begins = [text](std::string_view scheme) {
    return equals_ignoring_case(text.substr(0, scheme.size()), scheme);
  };
  if (begins("https://")) {
    url.scheme = "https";
    url.port = 443;
  } else if (!begins("http://")) {
    return bad("does not begin with http:// or https://");
  }

  auto rest = text.substr(text.find("://") + 3);
  rest = rest.substr(0, rest.find('#'));
  auto const ends_it = [](char c) { return c == '/' || c == '?'; };
  auto const authority = rest.substr(0, std::find_if(rest.begin(), rest.end(), ends_it) - rest.begin());
  url.path = rest.substr(authority.size());
  if (url.path.starts_with('?')) url.path.insert(0, "/");
  if (authority.find('@') != std::string_view::npos) return bad("has a user name");

  auto host_end = authority.find(':');
  if (authority.starts_with('[')) {
    auto const bracket = authority.find(']');
    if (bracket == std::string_view::npos) return bad("has an unclosed '['");
    url.host = authority.substr(1, bracket - 1);
    host_end = bracket + 1;
  } else {
    url.host = authority.substr(0, host_end);
  }
  if (url.host.empty()) return bad("has no host");
  auto const port = authority.substr(std::min(host_end, authority.size()));
  if (port.empty()) return url;
  auto const* const first = port.data() + 1;
  auto const* const last = port.data() + port.size();
  auto const [end, error] = std::from_chars(first, last, url.port);
  if (port.front() != ':' || error != std::errc() || end != last || url.port == 0) return bad("has a malformed port");
  return url;
}

Result<std::vector<std::string>> parse_services(std::string_view text) {
  std::vector<std::string> urls;
  for (;;) {
    auto const comma = text.find(',');
    auto one = text.substr(0, comma);
    while (one.ends_with('/')) one.remove_suffix(1);
    auto const url = parse_url(one);
    if (!url) return url.error();
    if (!url->path.empty()) return Error(HttpErrc::bad_url, "'" + printable(one) + "': has a path");
    urls.emplace_back(one);
    if (comma == std::string_view::npos) return urls;
    text.remove_prefix(comma + 1);
  }
}

Result<std::string> parse_listen_host(std::string_view text) {
  bool const is_bracketed = text.size() > 2 && text.starts_with('[') && text.ends_with(']');
  auto const host = is_bracketed ? text.substr(1, text.size() - 2) : text;
  boost::system::error_code not_an_address;
  static_cast<void>(boost::asio::ip::make_address_v6(std::string(host), not_an_address));
  if (!not_an_address) return std::string(host);
  auto const belongs = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-' ||
           c == '_';
  };
  if (!is_bracketed && !host.empty() && std::all_of(host.begin(), host.end(), belongs)) return std::string(host);
  return Error(HttpErrc::bad_url,
               "'" + printable(text) + "' is neither an address nor a name, like 0.0.0.0, ::1 or h1");
}

}  // namespace chorus::http
