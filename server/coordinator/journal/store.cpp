#include "server/coordinator/journal/store.hpp"

#include <algorithm>

namespace chorus::coordinator {
namespace {

constexpr std::array<std::string_view, all_tables.size()> names{
    "workers", "epochs",   "groups",     "collectives", "decisions",
    "events",  "counters", "parameters", "shards",      "parameter_epochs"};

}  // namespace

std::string_view name(Table table) { return names.at(static_cast<std::size_t>(table)); }

std::optional<Table> find_table(std::string_view text) {
  auto const found = std::ranges::find(names, text);
  if (found == names.end()) return std::nullopt;
  return all_tables.at(static_cast<std::size_t>(found - names.begin()));
}

}  // namespace chorus::coordinator
