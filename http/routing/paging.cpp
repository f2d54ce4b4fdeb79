#include "http/routing/paging.hpp"

namespace chorus::http {

Checked<Page> page_of(Request const& request) {
  Page page;
  auto const limit = request.query_number("limit", page_limit);
  if (limit.has_error() || limit.value() == 0)
    return Problem(ProblemCode::bad_request, "query parameter 'limit' is '" +
                                                 std::string(request.query_value("limit").value_or("")) +
                                                 "', expected a number from 1 to " + std::to_string(page_limit));
  if (auto const asked = limit.value()) page.limit = static_cast<std::size_t>(*asked);
  page.after = request.query_value("cursor").value_or("");
  return page;
}

}  // namespace chorus::http
