// What several GPUs of one worker do together, each with a part of the work, on memory that all of them see.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "worker/devices/cuda/gpus.hpp"

namespace chorus::devices {

// Memory, and the GPU on which it lies.
struct Placed {
  GpuUnit* unit = nullptr;
  std::byte* data = nullptr;
};

// Below this, one GPU is done before a second one has begun.
inline constexpr std::uint64_t together_bytes_min = 1 << 20;

// Whether each of them sees the memory of all others. Turns that on.
[[nodiscard]] bool see_each_other(std::span<GpuUnit* const> units);

// result[i] = sources[0][i] op sources[1][i] op ..., in this order: the same bits as one GPU makes of it. Each of the
// units, which see each other and all of this memory, takes a slice of all sources where they lie, and writes it where
// the result is: of n tensors of S bytes on n GPUs, each reads S (n-1)/n from the others. Waits. Errors: GpuErrc, the
// first that came up; nothing is under way then.
[[nodiscard]] Status fold_together(std::span<GpuUnit* const> units, ReduceOp op, Dtype dtype,
                                   std::span<Placed const> sources, Placed result, std::uint64_t elements);

// Copies to all of these places, whose GPUs see each other and the source. In two rounds: each other GPU fetches a
// slice, then the others' slices from them, so that the source sends its bytes once (scatter and allgather; van de
// Geijn 1994). Waits. Errors: as above.
[[nodiscard]] Status spread_together(Placed from, std::span<Placed const> to, std::uint64_t bytes);

}  // namespace chorus::devices
