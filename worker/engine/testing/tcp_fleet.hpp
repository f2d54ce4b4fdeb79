// Data planes of many ranks in one process, connected by real HTTP upgrades on 127.0.0.1: over TCP or, with arenas,
// over shared memory.
#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "http/server/server.hpp"
#include "worker/engine/groups/group.hpp"
#include "worker/engine/testing/arenas.hpp"
#include "worker/engine/testing/cases/case.hpp"
#include "worker/engine/testing/doubles.hpp"

namespace chorus::engine::testing {

class TcpFleet final : public Fleet {
 public:
  TcpFleet(std::uint32_t ranks, DataPlaneOptions options, Arenas arenas = {}, Tensors tensors = Tensors::in_arenas,
           Doubles gpus = {});
  ~TcpFleet() override;

  [[nodiscard]] std::uint32_t ranks() const override { return static_cast<std::uint32_t>(members_.size()); }
  [[nodiscard]] Peer peer(plan::Rank rank) const override;
  [[nodiscard]] Buffer allocate(plan::Rank rank, std::size_t bytes) override;
  [[nodiscard]] devices::GpuUnit* gpu(plan::Rank rank) const override { return unit_of(gpus_, rank); }
  void start(plan::Rank rank, RunSpec spec, RunDone done) override;
  bool run_until(std::atomic<std::size_t> const& ended, std::size_t count) override;

  // Returns the membership of a rank in a group of all ranks.
  [[nodiscard]] GroupMembership membership(std::string name, plan::Rank rank) const;
  [[nodiscard]] DataPlane& plane(plan::Rank rank) { return *members_[rank]->plane; }
  [[nodiscard]] memory::Arena& arena(plan::Rank rank) { return *arenas_[rank]; }

 private:
  struct Member {
    boost::asio::awaitable<http::Response> link(http::Request const& request, http::Body& body);
    std::unique_ptr<DataPlane> plane;
    http::Router router;
    std::unique_ptr<http::Server> server;
    std::uint16_t port = 0;
  };
  boost::asio::awaitable<void> stop_servers();

  Arenas const arenas_;  // null for ranks without an arena
  Tensors const tensors_;
  Doubles const gpus_;  // null for ranks without a GPU
  boost::asio::io_context io_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  std::vector<std::unique_ptr<Member>> members_;
  std::thread thread_;
};

}  // namespace chorus::engine::testing
