#include "http/routing/paging.hpp"

namespace chorus::http {

Checked<Page> page_of(Request const& request) {
  Page page;
  auto const limit = request.query_number("limit", page_limit);
  if (limit.has_error()) return limit.error();
  if (auto const asked = limit.value()) {
    if (*asked == 0) return Problem(ProblemCode::bad_request, "query parameter limit is 0; expected 1 to 1000");
    page.limit = static_cast<std::size_t>(*asked);
  }
  page.after = request.query_value("cursor").value_or("");
  return page;
}

}  // namespace chorus::http
