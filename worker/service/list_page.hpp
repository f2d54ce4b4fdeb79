// Lists are {items, next_cursor}: a page of ?limit= items, which begins after ?cursor=, the name of the last item
// before.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "http/message.hpp"

namespace chorus::service {

struct ListPage {
  std::string after;  // "" begins at the first item
  std::uint64_t length = 0;

  // Problem bad_request for a limit that is none.
  [[nodiscard]] static http::Checked<ListPage> of(http::Request const& request) {
    constexpr std::uint64_t default_length = 100, max_length = 1000;
    auto const limit = request.query_number("limit", max_length);
    if (!limit) return limit.error();
    return ListPage{std::string(request.query_value("cursor").value_or("")),
                    std::max<std::uint64_t>(limit->value_or(default_length), 1)};
  }

  // Of a list that was filled with one item more than the page has, if there is one more.
  template <class List>
  void cut(List& list) const {
    if (list.items.size() <= length) return;
    list.items.resize(length);
    list.next_cursor = list.items.back().name;
  }
};

}  // namespace chorus::service
