// The arenas of peers' GPUs that runs of this worker read where they lie.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "worker/devices/cuda/gpus.hpp"
#include "worker/devices/cuda/lending.hpp"
#include "worker/engine/connection.hpp"
#include "worker/links/lending.hpp"

namespace chorus::engine {

// To map one takes the driver milliseconds: each is mapped once, and kept until its owner's link ends and no run reads
// it. What could not be tried is tried again after a while. On the data thread. The GPUs that read outlive it.
class BorrowedArenas {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  struct Found {
    std::shared_ptr<devices::BorrowedArena const> arena;  // null: it is not to be read here
    std::string why_not;
    bool is_final = false;  // there is no use in trying again
  };
  [[nodiscard]] Found find(devices::GpuUnit& reader, Identity const& owner, links::Lend const& lend, TimePoint now);
  void forget(Identity const& owner);

  // Some that were forgotten are mapped as long as the device has not read their proofs: they go then.
  [[nodiscard]] bool has_leaving() const { return !leaving_.empty(); }
  void bury();

 private:
  // Of those that cannot be read, or not yet, so many are remembered; an owner has one for each of its GPUs.
  static constexpr std::size_t unmapped_max = 64;
  static constexpr std::chrono::seconds pause{5};

  struct Known {
    devices::GpuUnit* reader = nullptr;
    Identity owner;
    links::Lend lend;
    Found found;
    std::unique_ptr<devices::Borrowing> under_way;
    TimePoint again_at{};
  };
  // Null: too many are under way.
  [[nodiscard]] Known* know(devices::GpuUnit& reader, Identity const& owner, links::Lend const& lend);
  void go_on(Known& known, TimePoint now);

  std::vector<Known> known_;
  std::vector<std::unique_ptr<devices::Borrowing>> leaving_;  // forgotten while the device still had to read a proof
};

}  // namespace chorus::engine
