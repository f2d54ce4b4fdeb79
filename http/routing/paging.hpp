// Lists are {items, next_cursor}. A cursor is the name of the last item of the previous page. Any text is a valid
// cursor; a cursor that no service issued only decides where the page begins.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "http/message/message.hpp"

namespace chorus::http {

inline constexpr std::size_t page_limit = 1000;

struct Page {
  std::string after;  // "" begins at the first item
  std::size_t limit = 100;
};

// Reads ?limit=1..1000&cursor=.. Problems: bad_request.
[[nodiscard]] Checked<Page> page_of(Request const& request);

// Makes a page from `sorted`, which maps names to values; `show` makes an item from a value.
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

// Cuts a list to the page and sets its cursor. The list was filled with one named item more than the page, if there is
// one.
template <class List>
void cut(List& list, Page const& page) {
  if (list.items.size() <= page.limit) return;
  list.items.resize(page.limit);
  list.next_cursor = list.items.back().name;
}

}  // namespace chorus::http
