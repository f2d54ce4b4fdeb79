#include "server/cli/files/links_file.hpp"

#include <cerrno>
#include <fstream>
#include <iterator>
#include <string>

#include "http/json/json.hpp"
#include "server/cli/text/errc.hpp"

namespace chorus::cli {

Result<api::LinkMatrix> read_links(std::string_view path) {
  std::string const name(path);
  std::ifstream file(name);
  if (!file) return Error(std::error_code(errno, std::generic_category()), "cannot read " + name);
  std::string const text{std::istreambuf_iterator<char>(file), {}};
  auto links = http::decode<api::LinkMatrix>(text);
  if (links) return std::move(*links);
  return Error(CliErrc::bad_value, name + ": " + links.error().detail);
}

}  // namespace chorus::cli
