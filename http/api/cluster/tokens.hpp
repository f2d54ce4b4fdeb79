// One line of the token file (http/auth/token_file.hpp).
#pragma once

#include <optional>
#include <string>

namespace chorus::api {

struct TokenLine {
  std::string id;
  std::string role;    // read, submit, join, admin
  std::string sha256;  // of the whole token, as hexadecimal digits
  std::optional<std::string> expires;
};

}  // namespace chorus::api
