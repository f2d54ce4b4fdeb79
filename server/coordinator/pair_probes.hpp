// Has pairs of workers measure the way between them, and remembers what they said.
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

#include "http/condition.hpp"
#include "http/task_group.hpp"
#include "server/coordinator/lock_table.hpp"
#include "server/coordinator/pair_memory.hpp"
#include "server/coordinator/standing.hpp"
#include "server/coordinator/worker_client.hpp"

namespace chorus::coordinator {

// All pairs of 0 to count - 1, the lesser first, in count - 1 rounds (count of them if it is odd) of pairs that have
// nobody in common. Source: the circle method, Kirkman, 1847.
[[nodiscard]] std::vector<std::vector<std::pair<std::uint32_t, std::uint32_t>>> rounds_of_pairs(std::uint32_t count);

struct ProbingPatience {
  std::chrono::milliseconds pair{5000};  // for one pair to measure
  std::chrono::milliseconds all{60000};  // for all pairs of a group, also to wait for their turn
};

// No worker is in two of its measurements at once. On one thread. What the tools refer to outlives join().
class PairProbes {
 public:
  struct Tools {
    boost::asio::any_io_executor executor;
    WorkerClient& workers;
    spdlog::logger& log;
  };
  PairProbes(Tools tools, ProbingPatience patience);
  PairProbes(PairProbes const&) = delete;
  PairProbes& operator=(PairProbes const&) = delete;

  // Asks every pair of these that is not remembered, a round at a time. Returns when all have answered or failed, the
  // patience is at its end, after cancel(), or when is_wanted() says no; it is asked after look_again().
  boost::asio::awaitable<void> measure(std::vector<Worker> workers, std::function<bool()> is_wanted);
  void look_again() { changed_.notify_all(); }

  // What is remembered of these, by their places in the list.
  [[nodiscard]] PairLinks known(std::span<Worker const> workers) const;
  [[nodiscard]] PairMemory& memory() { return memory_; }

  // To stop: nothing is measured from now on; then wait for what was under way.
  void cancel();
  boost::asio::awaitable<void> join() { return probes_.join(); }

 private:
  struct Round;
  class Asked;

  boost::asio::awaitable<void> ask(std::shared_ptr<Round> round, Worker worker, Worker other, http::TimePoint deadline);

  static constexpr std::size_t pairs_remembered = 1 << 15;

  Tools const tools_;
  ProbingPatience const patience_;
  PairMemory memory_{pairs_remembered};
  LockTable busy_;  // by worker
  http::Condition changed_;
  bool cancelled_ = false;
  http::TaskGroup probes_;
};

}  // namespace chorus::coordinator
