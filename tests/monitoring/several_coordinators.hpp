// Two coordinators on an etcd, and a worker, for the series that a coordinator with a journal does not export.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/support/fleets/cluster.hpp"
#include "tests/support/fleets/etcd.hpp"

namespace chorus::testing {

class SeveralCoordinators {
 public:
  // Waits until one of them leads and the worker has joined.
  SeveralCoordinators();

  [[nodiscard]] std::vector<std::string> urls() const;
  // A new group: the leader writes to etcd. A standby is asked whether it is ready.
  void round();

 private:
  [[nodiscard]] Service& leader();

  Etcd etcd_;
  std::vector<std::unique_ptr<Service>> coordinators_;
  std::unique_ptr<Service> worker_;
  std::size_t groups_ = 0;
};

}  // namespace chorus::testing
