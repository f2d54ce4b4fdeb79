#include "http/wire/errc.hpp"

#include <string>

namespace chorus::http {
namespace {

class HttpCategory final : public std::error_category {
 public:
  char const* name() const noexcept override { return "http"; }
  std::string message(int value) const override {
    switch (static_cast<HttpErrc>(value)) {
      case HttpErrc::bind_failed:
        return "cannot listen";
      case HttpErrc::bad_url:
        return "malformed URL";
      case HttpErrc::connect_failed:
        return "cannot connect";
      case HttpErrc::no_way:
        return "no way to the address";
      case HttpErrc::local_limit:
        return "out of local resources";
      case HttpErrc::timed_out:
        return "timed out";
      case HttpErrc::peer_closed:
        return "connection closed";
      case HttpErrc::malformed:
        return "not HTTP";
      case HttpErrc::too_large:
        return "too large";
      case HttpErrc::refused_upgrade:
        return "upgrade refused";
      case HttpErrc::tls_failed:
        return "no secure connection";
    }
    return "unknown http error";
  }
};

}  // namespace

std::error_category const& http_category() {
  static HttpCategory const category;
  return category;
}

}  // namespace chorus::http
