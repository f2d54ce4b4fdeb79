// Several coordinators, one after another, on one journal and port; each ends by SIGKILL or by itself.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/support/fleets/cluster.hpp"
#include "tests/support/held_port.hpp"
#include "tests/support/scratch_directory.hpp"

namespace chorus::testing {

class CoordinatorLives {
 public:
  CoordinatorLives();  // starts the first coordinator

  void start();
  void start_one_that_dies_at(int point);  // a point of tests/e2e/crashing_coordinator.cpp
  void kill();
  // Of the journal of a killed coordinator.
  void copy_journal() const;
  void restore_copy() const;
  [[nodiscard]] bool coordinator_has_died() const;  // true before the process is reaped
  [[nodiscard]] Service& coordinator() { return *coordinator_; }

 private:
  [[nodiscard]] std::string journal() const { return directory_ / "journal"; }
  void run(std::vector<std::string> arguments);

  ScratchDirectory const directory_;
  HeldPort const port_;
  std::unique_ptr<Service> coordinator_;
};

}  // namespace chorus::testing
