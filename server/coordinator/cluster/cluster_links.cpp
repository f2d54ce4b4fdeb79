// Measurements of links between workers: when they join, and before an epoch whose ranks follow measured links.
#include "server/coordinator/cluster/cluster.hpp"
#include "server/coordinator/cluster/cluster_change.hpp"

namespace chorus::coordinator {

namespace asio = boost::asio;
using Clock = std::chrono::steady_clock;

namespace {

constexpr std::size_t links_shown_max = 1000;

LinkMeasurements::End end_of(api::Member const& member) { return {member.worker, member.incarnation, member.url}; }

}  // namespace

// A turn of two workers to measure their link. A worker measures one link at a time; otherwise each measurement would
// find half of the bandwidth.
class Cluster::Turn {
 public:
  Turn(Cluster& cluster, std::string const& a, std::string const& b)
      : cluster_(cluster), ticket_(cluster.measuring_.enter({a, b})) {}
  ~Turn() {
    cluster_.measuring_.leave(ticket_);
    cluster_.turn_over_.notify_all();
  }
  Turn(Turn const&) = delete;
  Turn& operator=(Turn const&) = delete;

  asio::awaitable<void> come() {
    while (!cluster_.measuring_.holds(ticket_)) co_await cluster_.turn_over_.wait_until(TimePoint::max());
  }

 private:
  Cluster& cluster_;
  LockTable::Ticket const ticket_;
};

// Measures one link of every level beyond the host, to the worker that joined first.
asio::awaitable<void> Cluster::measure_links(Worker worker) {
  for (auto const level : all_levels) {
    if (level == Level::host) continue;
    std::optional<Worker> peer;
    for (auto const& [id, other] : membership_.all())
      if (other.ready && id != worker.id && shared_level(other.locality, worker.locality) == level &&
          (!peer || other.joined < peer->joined))
        peer = other;
    if (!peer) continue;
    Turn turn(*this, worker.id, peer->id);
    co_await turn.come();
    if (!is_still_there(worker)) co_return;
    if (is_still_there(*peer) && !co_await measure_link(worker, *peer, level)) co_return;
  }
}

bool Cluster::is_still_there(Worker const& worker) const {
  auto const* now = membership_.find(worker.id);
  return now != nullptr && now->ready && now->incarnation == worker.incarnation;
}

// False for a worker that cannot measure; it is asked no more.
asio::awaitable<bool> Cluster::measure_link(Worker worker, Worker peer, Level level) {
  api::ProbeRequest to;
  to.worker = peer.id;
  to.url = peer.url;
  auto const said = co_await tools_.workers.measure(worker.url, std::move(to), Clock::now() + patience_.measuring);
  if (said.has_error() || said.value().has_error()) co_return false;
  auto const measured = measured_by(said.value().value());
  if (!measured) co_return false;
  tools_.planner.measured(level, measured->latency_s, measured->bytes_per_s);
  if (links_.size() == links_shown_max) links_.erase(links_.begin());
  links_.push_back({worker.id, peer.id, std::string(name(level)), measured->latency_s, measured->bytes_per_s});
  tools_.log.info("link {} - {} level={} latency_us={:.1f} gbyte_per_s={:.3f}", worker.id, peer.id, name(level),
                  measured->latency_s * 1e6, measured->bytes_per_s * 1e-9);
  co_return true;
}

// A group that is repaired because it is not usable does not wait for measurements: it continues with the known links.
bool Cluster::may_measure(Change const& change) const {
  if (stopping_) return false;
  if (!change.mends) return true;
  auto const group = groups_.find(change.name);
  return change.broken_epoch == 0 && group.has_value() && group.value()->state == "ready";
}

asio::awaitable<void> Cluster::measure_pairs(std::shared_ptr<Change> change, std::vector<Worker> members) {
  pairs_.memory().keep_only(membership_);
  std::function<bool()> const is_wanted = [this, change] { return may_measure(*change); };
  co_await pairs_.measure(std::move(members), is_wanted);
}

Standing Cluster::standing_of(std::vector<Worker> const& members, api::GroupRequest const& request) const {
  Standing standing;
  for (auto const& worker : members) standing.localities.push_back(worker.locality);
  standing.gpus = ways_of_gpus(members);
  if (is_measured(request)) standing.pairs = std::make_shared<PairLinks const>(pairs_.known(members));
  return standing;
}

void Cluster::remember_pairs(JournalGroup const& kept) {
  if (!kept.pairs) return;
  auto const& members = kept.group.members;
  for (auto const& pair : *kept.pairs)
    pairs_.memory().remember(end_of(members.at(pair.a)), end_of(members.at(pair.b)),
                             {pair.latency_s, pair.bytes_per_s});
}

http::Checked<std::vector<api::MeasuredLink>> Cluster::links_of(std::string_view name) const {
  auto const group = groups_.find(name);
  if (group.has_error()) return group.error();
  std::vector<api::MeasuredLink> links;
  auto const standing = groups_.standing(*group.value());
  if (!standing.pairs) return links;
  auto const& members = group.value()->members;
  for (auto const& pair : *standing.pairs) {
    auto const& from = members[pair.a];
    auto const& to = members[pair.b];
    auto const level = shared_level(from.locality, to.locality);
    links.push_back({from.worker, to.worker, std::string(chorus::name(level)), pair.latency_s, pair.bytes_per_s});
  }
  return links;
}

}  // namespace chorus::coordinator
