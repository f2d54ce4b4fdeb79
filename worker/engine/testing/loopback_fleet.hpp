// Engines of many ranks in one thread, on a clock that the test moves. Links are pipes in memory or, with arenas, links
// through shared memory.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "worker/engine/engine.hpp"
#include "worker/engine/testing/arenas.hpp"
#include "worker/engine/testing/cases/case.hpp"
#include "worker/engine/testing/doubles.hpp"
#include "worker/engine/testing/kinds.hpp"
#include "worker/links/loopback.hpp"
#include "worker/links/shm/shm_link.hpp"
#include "worker/memory/regions/region_registry.hpp"

namespace chorus::engine::testing {

struct FleetOptions {
  std::uint32_t ranks = 2;
  links::LoopbackOptions network;
  std::uint64_t eager_bytes = 65536;
  std::uint64_t partials_bytes = DataPlaneOptions().partials_bytes;
  std::size_t early_runs = DataPlaneOptions().early_runs;
  std::uint64_t early_bytes = DataPlaneOptions().early_bytes;
  Arenas arenas;  // by rank; empty: the links are pipes
  Tensors tensors = Tensors::in_arenas;
  Doubles gpus;  // by rank, null: host memory; empty: no rank has a GPU
  bool lends_gpu_memory = false;
  bool both_ways = true;  // both ranks send on one connection; pipes only
};

class LoopbackFleet final : public Fleet {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  explicit LoopbackFleet(FleetOptions options);
  ~LoopbackFleet() override;

  [[nodiscard]] std::uint32_t ranks() const override { return static_cast<std::uint32_t>(members_.size()); }
  [[nodiscard]] Peer peer(plan::Rank rank) const override;
  [[nodiscard]] Buffer allocate(plan::Rank rank, std::size_t bytes) override;
  [[nodiscard]] devices::GpuUnit* gpu(plan::Rank rank) const override;
  void start(plan::Rank rank, RunSpec spec, RunDone done) override;
  bool run_until(std::atomic<std::size_t> const& ended, std::size_t count) override;

  [[nodiscard]] Engine& engine(plan::Rank rank) { return members_[rank]->engine; }
  [[nodiscard]] links::LoopbackNetwork& network() { return network_; }
  [[nodiscard]] TimePoint now() const override { return now_; }

  void let_move() override;
  void let_move(std::size_t steps);
  void pass(std::chrono::milliseconds time);  // moves the clock and lets deadlines expire
  // Breaks the links by which rank `from` sends to rank `to`; other links go on.
  void cut(plan::Rank from, plan::Rank to);
  // Ends a rank like a killed process: its links break without a notice, and connections to it are refused.
  void kill(plan::Rank rank);
  // Stops a rank like a stopped process: it does nothing until go_on().
  void stop(plan::Rank rank);
  void go_on(plan::Rank rank);
  // Returns the test's end of a link that rank `to` adopts.
  std::shared_ptr<links::Link> connect_stranger(plan::Rank to, Identity who);
  // Gets the link when a rank dials `impersonated`.
  std::function<void(std::shared_ptr<links::Link>)> on_dial;
  std::optional<plan::Rank> impersonated;

 private:
  struct Member final : Surroundings {
    Member(LoopbackFleet& f, plan::Rank r, DataPlaneOptions options)
        : fleet(f), rank(r), engine(std::move(options), *this, book) {}
    TimePoint now() override { return fleet.now_; }
    void dial(std::uint64_t send_connection, Peer const& peer, TimePoint deadline) override;
    void settle_soon() override;
    void watch_soon() override;
    void deadline_changed() override {}
    void poll_devices_soon() override {}  // the fleet polls in step()

    LoopbackFleet& fleet;
    plan::Rank const rank;
    TrafficBook book;
    Engine engine;
    Kinds kinds;
    bool dead = false;
  };

  bool step();
  bool step_shm();
  bool step_devices();
  struct Pair {
    std::shared_ptr<links::ShmLink> dialer, acceptor;
  };
  // Returns nothing without arenas, and if the acceptor cannot map the region.
  std::optional<Pair> shm_pair(plan::Rank from, plan::Rank to);
  void connect(Member& from, std::uint64_t send_connection, Peer const& peer);

  TimePoint now_{std::chrono::hours(1)};
  Doubles const gpus_;
  links::LoopbackNetwork network_;
  std::vector<std::unique_ptr<Member>> members_;
  std::deque<std::function<void()>> later_;
  struct Wire {
    plan::Rank from, to;
    std::weak_ptr<links::Link> link;
  };
  std::vector<Wire> wires_;
  struct NetworkEnd {
    plan::Rank rank;
    std::weak_ptr<links::Link> link;
  };
  std::vector<NetworkEnd> network_ends_;
  Arenas const arenas_;
  Tensors const tensors_;
  bool const lends_gpu_memory_;
  bool const both_ways_;
  std::mt19937_64 random_;
  boost::asio::io_context io_{1};
  memory::RegionRegistry regions_;
  struct ShmEnd {
    plan::Rank rank;
    std::shared_ptr<links::ShmLink> link;
  };
  std::vector<ShmEnd> shm_ends_;
  std::set<plan::Rank> stopped_;
};

}  // namespace chorus::engine::testing
