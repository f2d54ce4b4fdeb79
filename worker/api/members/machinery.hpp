// What the calls of a worker's members share.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "metrics/runs/run_ledger.hpp"
#include "worker/engine/groups/group.hpp"
#include "worker/service/collectives/groups/group.hpp"

namespace chorus::embedded {

class Member;

// `owner` keeps it all alive.
struct Machinery {
  std::shared_ptr<void const> owner;
  engine::DataPlane* plane = nullptr;
  engine::PlanCache* plans = nullptr;
  memory::RegionRegistry* regions = nullptr;
  memory::Arena* arena = nullptr;  // null: no memory is shared
  // Tells the coordinator of a call that failed. Any thread.
  std::function<void(::chorus::api::Trouble)> report;
  // Makes the group of this name, of these ids in the order of their ranks, and joins it. Any thread.
  using TimePoint = std::chrono::steady_clock::time_point;
  std::function<Result<std::shared_ptr<Member>>(std::string const& name, std::vector<std::string> ids,
                                                TimePoint deadline)>
      create;
  std::shared_ptr<metrics::RunLedger> ledger;  // of one member
};

}  // namespace chorus::embedded
