// The arenas of peers' GPUs that runs of this worker read where they lie.
#pragma once

#include <string>
#include <vector>

#include "worker/devices/cuda/gpus.hpp"
#include "worker/devices/cuda/lending.hpp"
#include "worker/engine/connection.hpp"
#include "worker/links/lending.hpp"

namespace chorus::engine {

// To map one takes the driver milliseconds: each is mapped once, and kept until its owner's link ends and no run reads
// it. On the data thread. The GPUs that read outlive it.
class BorrowedArenas {
 public:
  struct Found {
    std::shared_ptr<devices::BorrowedArena const> arena;  // null: it is not to be read here
    std::string why_not;
    bool is_final = false;  // there is no use in trying again
  };
  [[nodiscard]] Found find(devices::GpuUnit& reader, Identity const& owner, links::Lend const& lend);
  void forget(Identity const& owner);

 private:
  struct Known {
    devices::GpuUnit const* reader = nullptr;
    Identity owner;
    links::Lend lend;
    Found found;
  };
  std::vector<Known> known_;
};

}  // namespace chorus::engine
