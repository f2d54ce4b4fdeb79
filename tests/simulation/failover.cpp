// The part of Life for several coordinators on a modelled etcd: starts, ends, and faults of the leader and of etcd.
#include <boost/asio/co_spawn.hpp>
#include <charconv>

#include "tests/simulation/life.hpp"

namespace chorus::simulation {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;

constexpr std::uint16_t first_etcd_port = 2379;
constexpr auto leaders_lease = 2s;
constexpr auto time_to_hand_over = 2s;

}  // namespace

std::vector<std::string> Life::etcd_urls() const {
  std::vector<std::string> urls;
  for (std::size_t i = 0; i < etcd_members_.size(); ++i)
    urls.push_back("http://127.0.0.1:" + std::to_string(first_etcd_port + i));
  return urls;
}

// A starting member has all keys, and gives leases their full time.
void Life::start_etcd(std::size_t index) {
  auto const process = std::make_shared<EtcdProcess>("etcd" + std::to_string(index));
  machine_.add(process->host);
  etcd_->keys.extend_leases(machine_.now());
  machine_.run_as(process->host, [&] {
    process->service = std::make_unique<ModelEtcd>(process->host.io.get_executor(), *etcd_);
    auto const port = process->service->start(static_cast<std::uint16_t>(first_etcd_port + index));
    if (!port) broken("a member of etcd does not start: " + port.error().detail);
  });
  etcd_members_[index] = process;
}

void Life::kill_etcd(std::size_t index) { reap(std::exchange(etcd_members_[index], nullptr)); }

// Returns the index of the coordinator that leads according to etcd, if its process lives.
std::optional<std::size_t> Life::leader() const {
  auto const url = etcd_->leader();
  auto const colon = url.rfind(':');
  std::size_t port = 0;
  if (colon == std::string::npos ||
      std::from_chars(url.data() + colon + 1, url.data() + url.size(), port).ec != std::errc())
    return std::nullopt;
  auto const index = port - coordinator_port;
  return index < coordinators_.size() && coordinators_[index] ? std::optional(index) : std::nullopt;
}

// Starts a coordinator that has ended by itself again, as a supervisor does.
void Life::coordinator_ended(std::size_t index, CoordinatorProcess const* process) {
  if (goes_home_ || coordinators_[index].get() != process) return;
  kill_coordinator(index);
  machine_.at(machine_.now() + 1ms * static_cast<Duration::rep>(100 + below(900)), [this, index] {
    if (!goes_home_ && !coordinators_[index]) start_coordinator(index);
  });
}

void Life::kill_leader(TimePoint start_again) {
  auto const index = leader();
  if (!index) return;
  kill_coordinator(*index);
  machine_.at(start_again, [this, index = *index] {
    if (!goes_home_ && !coordinators_[index]) start_coordinator(index);
  });
}

void Life::hand_over(std::size_t index) {
  auto* const process = coordinators_[index].get();
  machine_.run_as(process->host, [&] {
    asio::co_spawn(process->host.io, process->service->hand_over(machine_.now() + time_to_hand_over),
                   [this, index, process](std::exception_ptr failure) {
                     if (failure) broken("a hand-over ended with an exception");
                     machine_.at(machine_.now(), [this, index, process] { coordinator_ended(index, process); });
                   });
  });
}

// Stops or kills all members of etcd, or one.
void Life::harm_etcd(TimePoint until) {
  bool const is_stopped = one_in(2);
  auto const only = one_in(2) ? std::optional(below(etcd_members_.size())) : std::nullopt;
  for (std::size_t i = 0; i < etcd_members_.size(); ++i) {
    if (!etcd_members_[i] || (only && *only != i)) continue;
    if (is_stopped) {
      stop_until(etcd_members_[i]->host, until);
      continue;
    }
    kill_etcd(i);
    machine_.at(until, [this, i] {
      if (!goes_home_ && !etcd_members_[i]) start_etcd(i);
    });
  }
}

// Cuts the connections to etcd when the next write of rows is done, so that its answer is lost.
void Life::silence_next_write() {
  if (faults_are_over_) return;
  etcd_->next_write = [this] {
    machine_.at(machine_.now(), [this] {
      auto const leads = leader();
      for (auto const& member : etcd_members_)
        if (member && leads) machine_.cut_connections(coordinators_[*leads]->host, member->host);
    });
  };
}

void Life::harm_leadership(TimePoint until) {
  if (one_in(3)) return harm_etcd(until);
  auto const index = leader();
  bool const is_one_sided = one_in(3);
  auto const kind = below(7);
  if (!index) return;
  auto& host = coordinators_[*index]->host;
  switch (kind) {
    case 0:
      return kill_leader(until);
    case 1:
      etcd_->next_write = [this, until] { machine_.at(machine_.now(), [this, until] { kill_leader(until); }); };
      return;
    case 2:
      stop_until(host, until + leaders_lease);
      return note_trouble(until + 2 * leaders_lease);
    case 3:
      for (auto const& member : etcd_members_)
        if (member) machine_.part(host, member->host, is_one_sided);
      break;
    case 4:
      for (auto const& seat : seats_)
        if (seat.process) machine_.part(host, seat.process->host, is_one_sided);
      break;
    case 5:
      return hand_over(*index);
    default:
      for (int i = 0; i < 10; ++i)
        machine_.at(machine_.now() + 1ms * static_cast<Duration::rep>(below(3000)), [this] { silence_next_write(); });
      return;
  }
  machine_.at(until, [this] { machine_.heal(); });
}

}  // namespace chorus::simulation
