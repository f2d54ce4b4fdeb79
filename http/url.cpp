#include <algorithm>
#include <charconv>

#include "http/ascii.hpp"
#include "http/client.hpp"
#include "http/errc.hpp"

namespace chorus::http {

Result<Url> parse_url(std::string_view text) {
  auto const bad = [text](std::string_view why) {
    return Error(HttpErrc::bad_url, "'" + std::string(text) + "': " + std::string(why));
  };
  // Also what would end the request line: a URL may come from a file or from another service.
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

}  // namespace chorus::http
