#include "server/coordinator/cluster/joining_links.hpp"

#include <optional>
#include <string>

#include "server/coordinator/cluster/link_measurements.hpp"

namespace chorus::coordinator {

namespace asio = boost::asio;
using Clock = std::chrono::steady_clock;

namespace {

constexpr std::size_t links_shown_max = 1000;

}  // namespace

// A turn of two workers to measure their link. A worker measures one link at a time; otherwise each measurement would
// find half of the bandwidth.
class JoiningLinks::Turn {
 public:
  Turn(JoiningLinks& links, std::string const& a, std::string const& b)
      : links_(links), ticket_(links.measuring_.enter({a, b})) {}
  ~Turn() {
    links_.measuring_.leave(ticket_);
    links_.turn_over_.notify_all();
  }
  Turn(Turn const&) = delete;
  Turn& operator=(Turn const&) = delete;

  asio::awaitable<void> come() {
    while (!links_.measuring_.holds(ticket_)) co_await links_.turn_over_.wait_until(TimePoint::max());
  }

 private:
  JoiningLinks& links_;
  LockTable::Ticket const ticket_;
};

asio::awaitable<void> JoiningLinks::measure(Worker worker) {
  for (auto const level : all_levels) {
    if (level == Level::host) continue;
    std::optional<Worker> peer;
    for (auto const& [id, other] : tools_.membership.all())
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

bool JoiningLinks::is_still_there(Worker const& worker) const {
  auto const* now = tools_.membership.find(worker.id);
  return now != nullptr && now->ready && now->incarnation == worker.incarnation;
}

// False for a worker that cannot measure; it is asked no more.
asio::awaitable<bool> JoiningLinks::measure_link(Worker worker, Worker peer, Level level) {
  api::ProbeRequest to;
  to.worker = peer.id;
  to.url = peer.url;
  auto const said = co_await tools_.workers.measure(worker.url, std::move(to), Clock::now() + patience_);
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

}  // namespace chorus::coordinator
