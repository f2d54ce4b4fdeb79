#include "server/cli/files/links_file.hpp"

#include <string>

#include "base/whole_file.hpp"
#include "http/json/json.hpp"
#include "server/cli/text/errc.hpp"

namespace chorus::cli {

Result<api::LinkMatrix> read_links(std::string_view path) {
  std::string const name(path);
  auto const text = http::content_of_file(name);
  if (!text) return Error(text.error().code, "cannot read " + text.error().detail);
  auto links = http::decode<api::LinkMatrix>(*text);
  if (links) return std::move(*links);
  return Error(CliErrc::bad_value, name + ": " + links.error().detail);
}

}  // namespace chorus::cli
