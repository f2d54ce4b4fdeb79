#include "worker/links/host_number.hpp"

#include <algorithm>
#include <fstream>
#include <string>

#include "http/api/cluster/membership.hpp"

namespace chorus::links {

std::optional<std::uint64_t> host_number(std::string_view file) {
  std::ifstream stream{std::string(file)};
  std::string id;
  std::getline(stream, id);
  std::erase(id, '-');
  constexpr std::size_t id_digits = 32;
  if (id.size() != id_digits) return std::nullopt;
  return api::from_hex(std::string_view(id).substr(0, id_digits / 2));
}

}  // namespace chorus::links
