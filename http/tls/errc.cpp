#include "http/tls/errc.hpp"

#include <string>

namespace chorus::http {
namespace {

class AuthCategory final : public std::error_category {
 public:
  char const* name() const noexcept override { return "auth"; }
  std::string message(int value) const override {
    switch (static_cast<AuthErrc>(value)) {
      case AuthErrc::unreadable:
        return "cannot read";
      case AuthErrc::malformed:
        return "malformed";
      case AuthErrc::exists:
        return "exists already";
      case AuthErrc::not_protected:
        return "not protected";
      case AuthErrc::bad_certificate:
        return "bad certificate";
    }
    return "unknown auth error";
  }
};

}  // namespace

std::error_category const& auth_category() {
  static AuthCategory const category;
  return category;
}

}  // namespace chorus::http
