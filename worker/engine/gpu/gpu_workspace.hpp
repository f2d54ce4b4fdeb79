// The memory of a GPU that a run works on, and what is queued there to work on it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "worker/devices/cuda/gpu.hpp"
#include "worker/engine/ranges.hpp"

namespace chorus::engine {

// Who wants what a reduction completes, in places of its own as well.
class Sharers {
 public:
  static constexpr std::size_t places_max = 15;
  // Puts the places for these bytes of the output or of scratch behind each other, and says how many they are.
  [[nodiscard]] virtual std::size_t places_for(std::span<std::byte const> result, std::span<std::byte*> places) = 0;

 protected:
  ~Sharers() = default;
};

// Every method queues what concerns the next bytes of an instruction, and goes past them: what it reads must have been
// written by then, and who goes on there waits for a mark. Errors: GpuErrc.
class GpuWorkspace : public Ranges {
 public:
  // As of Ranges, with addresses of the GPU; and, where the program reduces, there is a kernel for (reduce, dtype).
  GpuWorkspace(plan::Program const& program, Dtype dtype, ReduceOp reduce, plan::Sizes const& sizes,
               std::span<std::byte const> input, std::span<std::byte> output);

  // How much memory of the GPU the run needs besides; it is given, aligned to 256 bytes, before anything else.
  [[nodiscard]] std::uint64_t own_bytes() const;
  void lie_in(std::byte* own);

  // The next bytes of a recv that belong as they are where it says; from pinned memory, on Lane::in.
  [[nodiscard]] Status copy_in(devices::GpuSession& session, std::uint32_t i, std::byte const* from,
                               std::uint64_t bytes);
  // The next bytes of any other recv, or of a recv_reduce; from memory of the GPU, on Lane::compute. Sharers, which may
  // be null, are asked where the reduction is complete.
  [[nodiscard]] Status take_in(devices::GpuSession& session, std::uint32_t i, std::byte const* received,
                               std::uint64_t bytes, Sharers* sharers = nullptr);
  // The next bytes of a copy or reduce, on Lane::compute.
  [[nodiscard]] Status work(devices::GpuSession& session, std::uint32_t i, std::uint64_t bytes);
  // Where the next bytes of a send lie, at most so many, and as far as they are contiguous; nothing is queued.
  [[nodiscard]] std::span<std::byte const> pass_source(std::uint32_t i, std::uint64_t limit);
  // The same of where the next bytes of a recv belong as they are.
  [[nodiscard]] std::span<std::byte> pass_destination(std::uint32_t i, std::uint64_t limit);
  // The next bytes of a send; to pinned memory, or to a peer's.
  [[nodiscard]] Status copy_out(devices::GpuSession& session, devices::Lane lane, std::uint32_t i, std::byte* to,
                                std::uint64_t bytes);

 private:
  // As Workspace::compute.
  [[nodiscard]] Status compute(devices::GpuSession& session, std::uint32_t i, std::span<std::byte> dst,
                               std::byte const* operand, std::byte const* other, Sharers* sharers = nullptr);

  Dtype const dtype_;
  ReduceOp const reduce_;
};

}  // namespace chorus::engine
