#include "server/coordinator/cluster/cluster_events.hpp"

#include "server/coordinator/diagnosis/stragglers.hpp"

namespace chorus::coordinator {

api::Event event_of(Worker const& worker, char const* type, std::string const& why) {
  api::Event event;
  event.type = type;
  event.worker = worker.id;
  event.incarnation = api::to_hex(worker.incarnation);
  if (!why.empty()) event.detail = why;
  return event;
}

api::Event event_of(api::Group const& group, char const* type, std::string const& why) {
  api::Event event;
  event.type = type;
  event.group = group.name;
  event.epoch = group.epoch;
  if (!why.empty()) event.detail = why;
  return event;
}

api::Event event_of(api::Group const& group, api::SlowMember const& member, bool is_slow) {
  api::Event event;
  event.type = is_slow ? "worker.slow" : "worker.caught_up";
  event.worker = member.worker;
  event.incarnation = group.members[member.rank].incarnation;
  event.group = group.name;
  event.epoch = group.epoch;
  if (is_slow) event.detail = slowness(member);
  return event;
}

}  // namespace chorus::coordinator
