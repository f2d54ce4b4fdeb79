// Reductions and copies by several GPUs of one worker with peer access, each of which does a part of the work.
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

// Smaller work is done by one GPU before a second one would have begun.
inline constexpr std::uint64_t together_bytes_min = 1 << 20;

// Returns true if each GPU has access to the memory of all others. Enables peer access.
[[nodiscard]] bool see_each_other(std::span<GpuUnit* const> units);

// result[i] = sources[0][i] op sources[1][i] op ..., in this order, with the same bits as Reducer::run with this `how`
// on one GPU. The first source is not wide. Each unit reads a slice of all sources in place and writes it to the
// result: of n tensors of S bytes on n GPUs, each reads S (n-1)/n bytes from the others. All units have access to each
// other and to all of this memory. Waits. Errors: GpuErrc, the first one; then no work is under way.
[[nodiscard]] Status fold_together(std::span<GpuUnit* const> units, ReduceOp op, Dtype dtype,
                                   std::span<Placed const> sources, Placed result, std::uint64_t elements,
                                   Reducer::How how = {});

// Copies `from` to all of these places, whose GPUs have access to each other and to the source. Scatter and allgather
// (van de Geijn 1994): each GPU fetches a slice, then the other slices from the other GPUs, so that the source sends
// its bytes once. Waits. Errors: as above.
[[nodiscard]] Status spread_together(Placed from, std::span<Placed const> to, std::uint64_t bytes);

}  // namespace chorus::devices
