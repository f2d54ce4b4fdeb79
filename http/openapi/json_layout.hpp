// JSON for people and for comparison by lines: indented by two spaces, a line per member, short values on one line.
#pragma once

#include <boost/json/value.hpp>
#include <string>

namespace chorus::http::openapi {

[[nodiscard]] std::string laid_out(boost::json::value const& value);

}  // namespace chorus::http::openapi
