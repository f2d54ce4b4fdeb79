#include "worker/service/identity.hpp"

#include <algorithm>

namespace chorus::service {

bool is_valid_worker_id(std::string_view id) {
  auto const allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
           c == '-';
  };
  return !id.empty() && id.size() <= 64 && std::all_of(id.begin(), id.end(), allowed);
}

}  // namespace chorus::service
