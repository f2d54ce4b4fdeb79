#include "server/coordinator/observability/scrape.hpp"

#include <algorithm>

#include "server/coordinator/text/wall_clock.hpp"

namespace chorus::coordinator {
namespace {

metrics::CoordinatorScrape::Group show(api::Group const& group) {
  auto const& asked = group.requested;
  auto const expected = asked.workers ? asked.workers->size() : asked.size.value_or(0);
  return {group.name, group.epoch, expected, group.members.size() - std::min(group.lost.size(), group.members.size())};
}

}  // namespace

metrics::CoordinatorScrape scrape_of(Cluster const& cluster, Collectives const& collectives,
                                     ParameterDirectory const& parameters, Events const& events,
                                     Journal const& journal) {
  metrics::CoordinatorScrape scrape;
  auto counts = collectives.counts();
  scrape.active = std::move(counts.active);
  scrape.queued = std::move(counts.queued);
  for (auto const& [name, group] : cluster.groups().all()) scrape.groups.push_back(show(*group));
  auto const now = std::chrono::steady_clock::now();
  auto const wall_s = wall_seconds();
  for (auto const& [id, worker] : cluster.membership().all())
    scrape.heartbeats.push_back({id, wall_s - std::chrono::duration<double>(now - worker.heard).count()});
  scrape.lease_seconds = std::chrono::duration<double>(cluster.membership().lease()).count();
  if (journal.on_disk()) {
    auto const written = journal.counts();
    scrape.journal = metrics::JournalScrape{written.writes, written.failures, written.unwritten, written.bytes, false};
  }
  scrape.events_published = events.published();
  scrape.event_streams_dropped = events.dropped();
  scrape.event_streams = events.streams();
  for (auto const& [name, record] : parameters.all())
    if (record->is_established) ++scrape.parameters[parameters.state_of(*record)];
  return scrape;
}

}  // namespace chorus::coordinator
