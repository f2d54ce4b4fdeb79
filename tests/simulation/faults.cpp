// The faults of a simulated cluster: kinds, times and ends. Leases have two seconds. A fault lasts up to six seconds,
// and up to twelve if all workers are silent at once, because the coordinator then waits four leases.
#include "tests/simulation/life.hpp"

namespace chorus::simulation {

using namespace std::chrono_literals;

Host* Life::some_host() {
  auto which = below(seats_.size() + coordinators_.size() + etcd_members_.size());
  auto const host_of = [](auto const& process) { return process ? &process->host : nullptr; };
  if (which < seats_.size()) return host_of(seats_[which].process);
  which -= seats_.size();
  if (which < coordinators_.size()) return host_of(coordinators_[which]);
  return host_of(etcd_members_[which - coordinators_.size()]);
}

void Life::plan_faults() {
  auto const begin = machine_.now();
  auto const count = one_in(6) ? 0 : 1 + below(12);
  for (std::uint64_t i = 0; i < count; ++i)
    machine_.at(begin + time_of_faults / 1000 * static_cast<Duration::rep>(below(1000)), [this] { fault(); });
  // A life with a broken promise has ended before.
  machine_.at(begin + time_of_faults, [this] {
    if (!faults_are_over_) end_all_faults();
  });
}

void Life::fault() {
  ++tally_.faults;
  auto const later = machine_.now() + 1ms * static_cast<Duration::rep>(1 + below(6000));
  do_harm(later);
  // A standby leads once the leader's lease has ended; the workers' leases begin again then.
  note_trouble(etcd_ ? later + 4s : later);
}

void Life::do_harm(TimePoint later) {
  if (etcd_ && one_in(2)) return harm_leadership(later);
  auto const index = below(seats_.size());
  auto const coordinator = below(coordinators_.size());
  auto* const a = some_host();
  auto* const b = some_host();
  switch (below(9)) {
    case 0:
      if (!seats_[index].process) return;
      note_kill();
      kill_worker(index);
      machine_.at(later, [this, index] {
        if (!faults_are_over_ && !seats_[index].process) start_worker(index);
      });
      return;
    case 1:
      if (!coordinators_[coordinator]) return;
      kill_coordinator(coordinator);
      machine_.at(later, [this, coordinator] {
        if (!faults_are_over_ && !coordinators_[coordinator]) start_coordinator(coordinator);
      });
      return;
    case 2:
      if (a == nullptr) return;
      stop_until(*a, later);
      return;
    case 3:
    case 4:
      if (a == nullptr || b == nullptr || a == b) return;
      machine_.part(*a, *b, one_in(3));
      machine_.at(later, [this] { machine_.heal(); });
      return;
    case 5:
      if (a == nullptr || b == nullptr || a == b) return;
      machine_.cut_connections(*a, *b);
      return;
    case 6:
    case 7:
      silence_all_workers(later + (later - machine_.now()));
      return;
    default:
      machine_.delay(0ms, 1ms * static_cast<Duration::rep>(below(400)));
      machine_.at(later, [this] { machine_.delay(20us, 200us); });
  }
}

void Life::stop_until(Host& host, TimePoint until) {
  machine_.stop(host);
  machine_.at(until, [this, &host] { machine_.go_on(host); });
}

// Stops all workers or cuts them off from the coordinators, so that no worker has died.
void Life::silence_all_workers(TimePoint until) {
  bool const are_stopped = one_in(2);
  for (auto const& seat : seats_) {
    if (!seat.process) continue;
    auto* const host = &seat.process->host;
    if (are_stopped) {
      stop_until(*host, until);
    } else {
      for (auto const& coordinator : coordinators_)
        if (coordinator) machine_.part(coordinator->host, *host, false);
    }
  }
  if (!are_stopped) machine_.at(until, [this] { machine_.heal(); });
  note_trouble(until);
}

void Life::end_all_faults() {
  faults_are_over_ = true;
  machine_.heal();
  machine_.delay(20us, 200us);
  if (etcd_) etcd_->next_write = nullptr;
  for (std::size_t i = 0; i < etcd_members_.size(); ++i) {
    if (!etcd_members_[i]) start_etcd(i);
    machine_.go_on(etcd_members_[i]->host);
  }
  for (std::size_t i = 0; i < coordinators_.size(); ++i) {
    if (!coordinators_[i]) start_coordinator(i);
    machine_.go_on(coordinators_[i]->host);
  }
  for (std::size_t i = 0; i < seats_.size(); ++i) {
    if (!seats_[i].process) start_worker(i);
    machine_.go_on(seats_[i].process->host);
  }
}

}  // namespace chorus::simulation
