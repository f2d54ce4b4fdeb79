// Where one side of TLS has its certificate, key and authorities.
#pragma once

#include <string>

namespace chorus::http {

struct TlsFiles {
  std::string certificate;  // PEM, with its chain; "" on a client that does not show one
  std::string key;          // PEM
  std::string authorities;  // PEM, whom this side believes; "" on a client: those of the system
  bool requires_client_certificate = false;
};

}  // namespace chorus::http
