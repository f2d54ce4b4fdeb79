// Makes pairs of workers measure their links, and keeps the results.
#pragma once

#include <spdlog/logger.h>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/runtime/condition.hpp"
#include "base/runtime/task_group.hpp"
#include "server/coordinator/cluster/link_measurements.hpp"
#include "server/coordinator/collectives/lock_table.hpp"
#include "server/coordinator/membership/worker_client.hpp"
#include "server/coordinator/topology/standing.hpp"

namespace chorus::coordinator {

// Returns all pairs of 0 to count - 1, the smaller number first, in rounds of disjoint pairs: count - 1 rounds, or
// count if it is odd. Source: the circle method, Kirkman, 1847.
[[nodiscard]] std::vector<std::vector<std::pair<std::uint32_t, std::uint32_t>>> rounds_of_pairs(std::uint32_t count);

struct ProbingPatience {
  std::chrono::milliseconds pair{5000};  // for one pair to measure
  std::chrono::milliseconds all{60000};  // for all pairs of a group, including the wait for their turn
};

// A worker takes part in one measurement at a time. Used on one thread. The objects in the tools outlive join().
class LinkProbes {
 public:
  struct Tools {
    boost::asio::any_io_executor executor;
    WorkerClient& workers;
    spdlog::logger& log;
  };
  LinkProbes(Tools tools, ProbingPatience patience);
  LinkProbes(LinkProbes const&) = delete;
  LinkProbes& operator=(LinkProbes const&) = delete;

  // Measures all pairs that are not yet known, round by round. Returns when all pairs have answered or failed, at the
  // end of the patience, after cancel(), or when is_wanted() returns false; look_again() makes it ask is_wanted().
  boost::asio::awaitable<void> measure(std::vector<Worker> workers, std::function<bool()> is_wanted);
  void look_again() { changed_.notify_all(); }

  // Returns the known links of these workers; a and b are indices in the list.
  [[nodiscard]] PairLinks known(std::span<Worker const> workers) const;
  [[nodiscard]] LinkMeasurements& memory() { return memory_; }

  // cancel() stops measuring; join() then waits for the running measurements.
  void cancel();
  boost::asio::awaitable<void> join() { return probes_.join(); }

 private:
  struct Round;
  class Asked;

  boost::asio::awaitable<void> ask(std::shared_ptr<Round> round, Worker worker, Worker other, http::TimePoint deadline);

  static constexpr std::size_t pairs_remembered = 1 << 15;

  Tools const tools_;
  ProbingPatience const patience_;
  LinkMeasurements memory_{pairs_remembered};
  LockTable busy_;  // by worker
  http::Condition changed_;
  bool cancelled_ = false;
  http::TaskGroup probes_;
};

}  // namespace chorus::coordinator
