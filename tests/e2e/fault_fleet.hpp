// Four workers, each behind a proxy that disturbs its connections, in a group that goes on without a lost member, and
// the oracle with the expected result of every operation on every rank.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/support/faults/fault_proxy.hpp"
#include "tests/support/faults/hanging_disk.hpp"
#include "tests/support/faults/small_disk.hpp"
#include "tests/support/fleets/cluster.hpp"

namespace chorus::testing {

// A collective over the "x" of all workers.
struct Work {
  std::string op;
  std::string algorithm = "auto";
  bool is_uneven = false;  // with a separate number of elements for each rank, one of them 0
};

class FaultFleet {
 public:
  static constexpr std::size_t workers_count = 4;
  static constexpr std::size_t nobody = workers_count;
  struct Setup {
    std::uint64_t seed = 1;
    std::size_t elements = 262147;     // of "x", in u64; a prime, so that no operation divides it evenly
    std::uint64_t timeout_ms = 2500;   // of a collective
    std::string hanging_disk_library;  // not "": workers log pushes, each on a separate disk that may hang
    bool has_small_disks = false;      // workers log pushes, each on a separate disk that may be full
  };
  explicit FaultFleet(Setup setup);

  Service& coordinator() { return *coordinator_; }
  Service& worker(std::size_t i) { return *workers_.at(i); }
  FaultProxy& proxy(std::size_t i) { return *proxies_.at(i); }
  HangingDisk const& disk(std::size_t i) { return *disks_.at(i); }
  SmallDisk const& small_disk(std::size_t i) { return *small_disks_.at(i); }
  void restart(std::size_t i);  // restarts a killed worker, with its input only

  // The tensor "y" of a worker, which receives the results.
  struct Held {
    std::uint64_t version = 0;  // 0: does not exist
    std::vector<std::uint64_t> values;
    bool operator==(Held const&) const = default;
  };
  std::vector<Held> look();

  void expect_health();
  bool stands_again();  // all four, within half a minute
  // Returns the record, or the problem if the collective was refused.
  boost::json::value run(Work const& work, bool goes_on);
  // Compares the workers' tensors with the record and with `before`, except those of a restarted worker. Returns the
  // outcome as text.
  std::string judge(boost::json::value const& record, Work const& work, std::vector<Held> const& before,
                    std::size_t restarted);

  // Number of corrupt frames found by all workers together.
  double corruptions_found();

 private:
  void start(std::size_t i);

  Setup const setup_;
  std::unique_ptr<Service> coordinator_;
  ScratchDirectory const logs_;
  std::vector<std::unique_ptr<HangingDisk>> disks_;
  std::vector<std::unique_ptr<SmallDisk>> small_disks_;
  std::vector<std::unique_ptr<FaultProxy>> proxies_;
  std::vector<std::unique_ptr<Service>> workers_;
};

}  // namespace chorus::testing
