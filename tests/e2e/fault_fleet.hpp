// Four workers, each behind a proxy that does harm, in a group that goes on without one that is lost; and the oracle
// that says what every operation leaves on every rank.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/support/cluster.hpp"
#include "tests/support/fault_proxy.hpp"

namespace chorus::testing {

// A collective over everybody's "x".
struct Work {
  std::string op;
  std::string algorithm = "auto";
  bool is_uneven = false;  // with a number of elements for each rank, one of them 0
};

class FaultFleet {
 public:
  static constexpr std::size_t workers_count = 4;
  static constexpr std::size_t nobody = workers_count;
  static constexpr std::size_t elements = 262147;  // a prime: no operation divides it evenly

  explicit FaultFleet(std::uint64_t seed);

  Service& coordinator() { return *coordinator_; }
  Service& worker(std::size_t i) { return *workers_.at(i); }
  FaultProxy& proxy(std::size_t i) { return *proxies_.at(i); }
  void restart(std::size_t i);  // one that was killed: it comes back with its input and nothing else

  // What a worker has as "y", where results go.
  struct Held {
    std::uint64_t version = 0;  // 0: it does not exist
    std::vector<std::uint64_t> values;
    bool operator==(Held const&) const = default;
  };
  std::vector<Held> look();

  void expect_health();
  bool stands_again();  // all four, within half a minute
  // The record, or the problem if it was refused.
  boost::json::value run(Work const& work, bool goes_on);
  // Holds what the workers have against the record, and what they had before; one that was restarted is not asked.
  // Gives the outcome in words.
  std::string judge(boost::json::value const& record, Work const& work, std::vector<Held> const& before,
                    std::size_t restarted);

  // Frames that were found to be changed on the way, by all workers together.
  double corruptions_found();

 private:
  void start(std::size_t i);

  std::unique_ptr<Service> coordinator_;
  std::vector<std::unique_ptr<FaultProxy>> proxies_;
  std::vector<std::unique_ptr<Service>> workers_;
};

}  // namespace chorus::testing
