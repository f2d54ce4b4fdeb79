// Lists are {items, next_cursor}. A cursor is the name of the last item of the page before: any text is a valid cursor,
// and one that nobody issued only decides where the page begins.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "http/message.hpp"

namespace chorus::http {

inline constexpr std::size_t page_limit = 1000;

struct Page {
  std::string after;  // "" begins at the first item
  std::size_t limit = 100;
};

// ?limit=1..1000&cursor=.. Problems: bad_request.
[[nodiscard]] Checked<Page> page_of(Request const& request);

// `sorted` maps names to values; `show` makes an item of an entry.
template <class List, class Map, class Show>
[[nodiscard]] List page_through(Map const& sorted, Page const& page, Show const& show) {
  List list;
  auto next = page.after.empty() ? sorted.begin() : sorted.upper_bound(page.after);
  for (; next != sorted.end() && list.items.size() < page.limit; ++next) {
    list.items.push_back(show(next->second));
    list.next_cursor = next->first;
  }
  if (next == sorted.end()) list.next_cursor.reset();
  return list;
}

// Of a list that was filled with one named item more than the page has, if there is one more.
template <class List>
void cut(List& list, Page const& page) {
  if (list.items.size() <= page.limit) return;
  list.items.resize(page.limit);
  list.next_cursor = list.items.back().name;
}

}  // namespace chorus::http
