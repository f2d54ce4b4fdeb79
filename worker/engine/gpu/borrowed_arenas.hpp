// Arenas of peers' GPUs that runs of this worker read in place.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "worker/devices/cuda/gpus.hpp"
#include "worker/devices/cuda/lending.hpp"
#include "worker/engine/transport/connection.hpp"
#include "worker/links/frames/lending.hpp"

namespace chorus::engine {

// Mapping an arena takes the driver milliseconds: each is mapped once, and kept until its owner's link ends and no run
// reads it. Attempts that could not be made are repeated later. Used on the data thread only. The reading GPUs outlive
// the object.
class BorrowedArenas {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  struct Found {
    std::shared_ptr<devices::BorrowedArena const> arena;  // null: cannot be read here
    std::string why_not;
    bool is_final = false;  // retrying is useless
  };
  [[nodiscard]] Found find(devices::GpuUnit& reader, Identity const& owner, links::Lend const& lend, TimePoint now);
  void forget(Identity const& owner);

  // Forgotten arenas stay mapped until the device has read their proofs.
  [[nodiscard]] bool has_leaving() const { return !leaving_.empty(); }
  void reap();

 private:
  // Limit for remembered arenas that are not mapped; an owner has one arena per GPU.
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
  // Null: too many mappings are in progress.
  [[nodiscard]] Known* know(devices::GpuUnit& reader, Identity const& owner, links::Lend const& lend);
  void go_on(Known& known, TimePoint now);

  std::vector<Known> known_;
  std::vector<std::unique_ptr<devices::Borrowing>> leaving_;  // forgotten before the device had read the proof
};

}  // namespace chorus::engine
