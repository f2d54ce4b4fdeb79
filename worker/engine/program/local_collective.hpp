// A collective among buffers of this process: the lower level of a collective where a worker holds several tensors of
// one name.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "collectives/core/dtype.hpp"
#include "collectives/core/reduce_op.hpp"
#include "collectives/plan/program.hpp"
#include "collectives/plan/sizes/sizes.hpp"
#include "worker/engine/program/workspace.hpp"

namespace chorus::engine {

// Buffers of one rank, as in RunSpec.
struct LocalBuffers {
  std::span<std::byte const> input;
  std::span<std::byte> output;
};

// Runs the plans of all ranks in the calling thread, without links: a message is a copy or a reduction from the memory
// of one rank into the memory of another. Returns when all ranks have finished; never fails.
// programs[r] is the program of rank r. All programs are of one spec and pass verify::check. The buffers have the sizes
// that the programs address. Where the programs reduce, kernels for (reduce, dtype) exist. `average`: see Workspace.
void run_local_collective(std::span<plan::Program const> programs, Dtype dtype, ReduceOp reduce,
                          plan::Sizes const& sizes, std::span<LocalBuffers const> buffers,
                          std::optional<Average> average = std::nullopt);

}  // namespace chorus::engine
