#include "server/coordinator/cluster/cluster_state.hpp"

#include <utility>

#include "base/logging/log.hpp"
#include "server/coordinator/cluster/cluster_events.hpp"

namespace chorus::coordinator {

using Clock = std::chrono::steady_clock;

void ClusterState::keep_worker(std::string const& id) {
  auto const kept = membership_.kept(id);
  tools_.journal.write(kept ? row_of(*kept) : without(Table::workers, id));
}

void ClusterState::keep_group(std::string const& name) {
  // Thousands of members that leave one after the other change a row of a megabyte thousands of times.
  tools_.journal.write(Table::groups, name, [this, name] {
    auto const kept = groups_.kept(name);
    return kept ? row_of(*kept).body : std::nullopt;
  });
}

void ClusterState::keep_epoch(std::string const& name, std::optional<std::string> const& forgotten) {
  if (forgotten) {
    tools_.journal.write(without(Table::epochs, *forgotten));
    tools_.journal.write(row_of(Counter::epoch_floor, groups_.epochs().floor()));
  }
  if (forgotten != name) tools_.journal.write(row_of(name, groups_.epochs().kept(name)));
}

void ClusterState::tell_of(Worker const& worker, char const* type, std::string const& why) {
  tools_.events.publish(event_of(worker, type, why));
}

void ClusterState::tell_of(api::Group const& group, char const* type, std::string const& why) {
  tools_.events.publish(event_of(group, type, why));
}

void ClusterState::tell_of(api::Group const& group, api::SlowMember const& member, bool is_slow) {
  auto event = event_of(group, member, is_slow);
  if (is_slow) tools_.log.warn("group {} epoch={}: {}", group.name, group.epoch, *event.detail);
  tools_.events.publish(std::move(event));
}

void ClusterState::restore(JournalState state) {
  for (auto const& id : membership_.restore(state.workers, Clock::now())) keep_worker(id);
  auto const floor = static_cast<std::uint32_t>(state.counters[Counter::epoch_floor]);
  groups_.restore(std::move(state.groups), state.epochs, floor);
  count_members();
}

void ClusterState::count_members() {
  auto const ready = membership_.ready_count();
  tools_.metrics.members(ready, membership_.all().size() - ready);
}

void ClusterState::degrade_groups_of(Worker const& worker, char const* why) {
  for (auto const& name : groups_.worker_lost(worker.id, worker.incarnation)) {
    logging::warn(tools_.log, "group.degraded", "group " + name + " degraded: worker " + worker.id + " " + why,
                  {{"group", name}, {"worker", worker.id}});
    keep_group(name);
    tell_of(*groups_.find(name).value(), "group.degraded", "worker " + worker.id + " " + why);
  }
}

}  // namespace chorus::coordinator
