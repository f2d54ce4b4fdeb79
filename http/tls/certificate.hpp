// Names and dates in a certificate.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/calendar.hpp"

struct x509_st;

namespace chorus::http {

struct Certificate {
  std::string subject;             // "CN = w1", for people
  std::vector<std::string> names;  // DNS names and addresses, only from the subject alternative names
  WallTime begins;
  WallTime ends;
};

[[nodiscard]] Certificate certificate_of(x509_st const& x509);

// `host` is a name or an address; the name "*.rack.example" covers one label.
[[nodiscard]] bool covers(std::vector<std::string> const& names, std::string_view host);

[[nodiscard]] std::string joined(std::vector<std::string> const& names);

}  // namespace chorus::http
