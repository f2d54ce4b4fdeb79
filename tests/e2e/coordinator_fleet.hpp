// Several coordinators on a real etcd, and two workers that hold 1 and 2.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/faults/fault_proxy.hpp"
#include "tests/support/fleets/cluster.hpp"
#include "tests/support/fleets/etcd.hpp"

namespace chorus::testing {

class CoordinatorFleet {
 public:
  struct Setup {
    std::size_t etcds = 1;
    std::size_t coordinators = 3;
    bool are_proxied = false;               // workers reach each coordinator through a separate proxy
    std::vector<std::string> flags = {};    // of each coordinator
    std::vector<std::string> command = {};  // put before the command line of each coordinator and worker
  };
  CoordinatorFleet() : CoordinatorFleet(Setup{}) {}
  explicit CoordinatorFleet(Setup setup);

  // Starts coordinator `i`, for the first time or again, on the same port.
  void start(std::size_t i);
  // start(), but the coordinator kills itself at the n-th point of crashing_coordinator.cpp that it passes while the
  // file `armed` exists.
  void start_crashing(std::size_t i, std::uint64_t point, std::string const& armed);
  void end(std::size_t i) { coordinators_[i].reset(); }
  // True if the coordinator's process has ended for any reason.
  [[nodiscard]] bool has_ended(std::size_t i) const;

  [[nodiscard]] std::size_t size() const { return coordinators_.size(); }
  Service& at(std::size_t i) { return *coordinators_.at(i); }
  [[nodiscard]] std::size_t number_of(Service const* one) const;
  [[nodiscard]] bool is_ready(std::size_t i) const;
  // Returns the body of the coordinator's GET /readyz, "" if it does not answer.
  [[nodiscard]] std::string ready_text(std::size_t i) const;
  [[nodiscard]] std::size_t leaders() const;
  // Returns null if no coordinator leads.
  [[nodiscard]] Service* leader(Service const* other_than = nullptr) const;

  // True if a launch through this coordinator succeeds. False for null, and if the coordinator ends meanwhile.
  static bool launches(Service const* by);
  // True if the launch with this key has succeeded, now or earlier. A launch that was interrupted by a change of the
  // leader gets a new key for the next try.
  static bool succeeds(Service const& leader, std::string& key);
  // The value of each worker after `launches` launches.
  [[nodiscard]] static std::vector<std::uint64_t> value_after(std::uint64_t launches);
  [[nodiscard]] bool holds(std::vector<std::uint64_t> const& value) const;

  // Disturbs the connections of coordinator `i` to every member of etcd.
  void harm_way_to_etcd(std::size_t i, Harm harm);
  // Disturbs the connections of workers to coordinator `i`. Needs proxies.
  void harm_way_of_workers(std::size_t i, Harm harm) { to_coordinators_.at(i)->suffer(harm); }

  Etcd etcd;
  std::vector<std::unique_ptr<Service>> workers;

 private:
  [[nodiscard]] std::string url_for_workers(std::size_t i) const;
  [[nodiscard]] std::string ways_to_etcd(std::size_t i) const;
  [[nodiscard]] std::vector<std::string> command_line(std::vector<std::string> arguments) const;

  Setup const setup_;
  std::vector<std::vector<std::unique_ptr<FaultProxy>>> to_etcd_;  // by coordinator and member
  std::vector<std::unique_ptr<FaultProxy>> to_coordinators_;
  std::vector<std::unique_ptr<HeldPort>> ports_;
  std::vector<std::unique_ptr<Service>> coordinators_;
};

// Prints why tests with etcd are skipped here.
bool is_etcd_missing();

}  // namespace chorus::testing
