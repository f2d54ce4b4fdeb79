// A collective among buffers of this process: the lower level where a worker holds several tensors of one name.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "collectives/core/dtype.hpp"
#include "collectives/core/reduce_op.hpp"
#include "collectives/plan/program.hpp"
#include "collectives/plan/sizes.hpp"
#include "worker/engine/program/workspace.hpp"

namespace chorus::engine {

// Of one rank, as in RunSpec.
struct LocalBuffers {
  std::span<std::byte const> input;
  std::span<std::byte> output;
};

// Runs the plan of all ranks in the calling thread, without links: a message is a copy or a reduction from one rank's
// memory into another's. programs[r] is that of rank r, all of one spec, and right (verify::check); the buffers hold
// what they address; the kernels for (reduce, dtype) exist where it reduces. `average`: as of Workspace. Returns when
// all is done.
void run_local_collective(std::span<plan::Program const> programs, Dtype dtype, ReduceOp reduce,
                          plan::Sizes const& sizes, std::span<LocalBuffers const> buffers,
                          std::optional<Average> average = std::nullopt);

}  // namespace chorus::engine
