#include "metrics/families/coordinator_families.hpp"

#include <algorithm>

#include "collectives/core/op.hpp"
#include "metrics/families/leadership_families.hpp"

namespace chorus::metrics {
namespace {

// Every operation has a series, also if its count is 0.
prometheus::MetricFamily by_op(Id id, std::map<std::string, std::size_t, std::less<>> const& counts) {
  auto family = make_family(id);
  for (auto op : all_ops) {
    auto const found = counts.find(name(op));
    add_value(family, id, {name(op)}, found == counts.end() ? 0 : static_cast<double>(found->second));
  }
  return family;
}

void add_groups(Families& families, std::vector<CoordinatorScrape::Group> const& groups) {
  auto members = make_family(Id::group_members);
  auto epochs = make_family(Id::group_epoch);
  for (std::size_t i = 0; i < std::min(groups.size(), groups_shown_max); ++i) {
    auto const& group = groups[i];
    add_value(members, Id::group_members, {group.name, "expected"}, static_cast<double>(group.expected));
    add_value(members, Id::group_members, {group.name, "ready"}, static_cast<double>(group.ready));
    add_value(epochs, Id::group_epoch, {group.name}, static_cast<double>(group.epoch));
  }
  families.push_back(std::move(members));
  families.push_back(std::move(epochs));
}

void add_journal(Families& families, JournalScrape const& journal) {
  families.push_back(single(Id::journal_writes, static_cast<double>(journal.writes)));
  families.push_back(single(Id::journal_errors, static_cast<double>(journal.errors)));
  families.push_back(single(Id::journal_unwritten, static_cast<double>(journal.unwritten_rows)));
  families.push_back(single(Id::journal_size, static_cast<double>(journal.bytes)));
  families.push_back(single(Id::unclean_shutdown, journal.was_unclean ? 1 : 0));
}

}  // namespace

std::size_t cut_families(CoordinatorScrape const& scrape) {
  constexpr std::size_t of_groups = 2;
  return (scrape.groups.size() > groups_shown_max ? of_groups : 0) +
         (scrape.heartbeats.size() > heartbeats_shown_max ? 1 : 0);
}

Families coordinator_families(CoordinatorScrape const& scrape) {
  Families families;
  families.push_back(by_op(Id::collectives_active, scrape.active));
  families.push_back(by_op(Id::collectives_queued, scrape.queued));
  add_groups(families, scrape.groups);
  auto heartbeats = make_family(Id::heartbeat);
  for (std::size_t i = 0; i < std::min(scrape.heartbeats.size(), heartbeats_shown_max); ++i)
    add_value(heartbeats, Id::heartbeat, {scrape.heartbeats[i].worker}, scrape.heartbeats[i].wall_seconds);
  families.push_back(std::move(heartbeats));
  families.push_back(single(Id::lease, scrape.lease_seconds));
  if (scrape.journal) add_journal(families, *scrape.journal);
  if (scrape.leadership) add_leadership(families, *scrape.leadership);
  families.push_back(single(Id::events_published, static_cast<double>(scrape.events_published)));
  families.push_back(single(Id::events_dropped, static_cast<double>(scrape.event_streams_dropped)));
  families.push_back(single(Id::event_streams, static_cast<double>(scrape.event_streams)));
  if (scrape.checkpoint_interval_seconds)
    families.push_back(single(Id::checkpoint_interval, *scrape.checkpoint_interval_seconds));
  auto parameters = make_family(Id::parameters);
  for (auto const* const state : {"ready", "degraded", "unavailable", "lost"}) {
    auto const found = scrape.parameters.find(state);
    auto const count = found == scrape.parameters.end() ? 0 : found->second;
    add_value(parameters, Id::parameters, {state}, static_cast<double>(count));
  }
  families.push_back(std::move(parameters));
  return families;
}

}  // namespace chorus::metrics
