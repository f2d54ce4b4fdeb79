#include "worker/service/tensors/entity_tag.hpp"

#include <algorithm>

#include "http/api/cluster/membership.hpp"
#include "worker/service/requests/single_field.hpp"

namespace chorus::service {
namespace {

std::string_view opaque(std::string_view tag) { return tag.starts_with("W/") ? tag.substr(2) : tag; }

void skip_spaces(std::string_view& text) { text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size())); }

// One entity-tag off the front of `text`; "" if there is none.
std::string_view take_tag(std::string_view& text) {
  auto const quote = text.starts_with("W/") ? std::size_t{2} : std::size_t{0};
  if (quote >= text.size() || text[quote] != '"') return {};
  auto const end = text.find('"', quote + 1);
  if (end == std::string_view::npos) return {};
  auto const tag = text.substr(0, end + 1);
  text.remove_prefix(tag.size());
  return tag;
}

http::Problem malformed(std::string_view field) {
  return {http::ProblemCode::bad_request, std::string(field) + " is neither * nor a list of entity tags in quotes"};
}

}  // namespace

std::string entity_tag(std::uint64_t incarnation, std::uint64_t version) {
  return '"' + api::to_hex(incarnation) + "-" + std::to_string(version) + '"';
}

bool TagList::matches_strongly(std::string_view tag) const {
  return any || std::find(tags.begin(), tags.end(), tag) != tags.end();
}

bool TagList::matches_weakly(std::string_view tag) const {
  return any || std::any_of(tags.begin(), tags.end(), [&](auto const& t) { return opaque(t) == opaque(tag); });
}

http::Checked<std::optional<TagList>> find_tags(http::Fields const& fields, std::string_view field) {
  auto const value = single_field(fields, field);
  if (!value) return value.error();
  if (!*value) return std::optional<TagList>();
  TagList list;
  auto rest = **value;
  skip_spaces(rest);
  list.any = rest == "*";
  while (!list.any) {
    auto const tag = take_tag(rest);
    if (tag.empty()) return malformed(field);
    list.tags.emplace_back(tag);
    skip_spaces(rest);
    if (rest.empty()) break;
    if (rest.front() != ',') return malformed(field);
    rest.remove_prefix(1);
    skip_spaces(rest);
  }
  return std::optional(std::move(list));
}

}  // namespace chorus::service
