// The memory of a GPU that a run works on, and the work queued there.
#pragma once

#include <cstddef>
#include <cstdint>

#include "worker/devices/cuda/gpu.hpp"
#include "worker/engine/program/ranges.hpp"
#include "worker/engine/program/reduction.hpp"

namespace chorus::engine {

// Receivers of completed results, which are written to their places as well.
class Sharers {
 public:
  static constexpr std::size_t places_max = 15;
  // Fills in the places for these bytes of the output or of scratch, and returns their number.
  [[nodiscard]] virtual std::size_t places_for(std::span<std::byte const> result, std::span<std::byte*> places) = 0;

 protected:
  ~Sharers() = default;
};

// Each method queues work on the next bytes of an instruction, and advances past them. Its sources must have been
// written before; users of its results wait for a mark. Errors: GpuErrc.
class GpuWorkspace : public Ranges {
 public:
  // As for Ranges, with addresses of the GPU; if the program reduces, a kernel exists for (reduce, dtype).
  GpuWorkspace(plan::Program const& program, Dtype dtype, ReduceOp reduce, plan::Sizes const& sizes,
               std::span<std::byte const> input, std::span<std::byte> output);

  // own_bytes(): additional GPU memory that the run needs. lie_in(): supplies it, aligned to 256 bytes, before anything
  // else is called.
  [[nodiscard]] std::uint64_t own_bytes() const;
  void lie_in(std::byte* own);

  // The next bytes of a recv that are stored unchanged; from pinned memory, on Lane::in.
  [[nodiscard]] Status copy_in(devices::GpuSession& session, std::uint32_t i, std::byte const* from,
                               std::uint64_t bytes);
  // The next bytes of any other recv, or of a recv_reduce; from GPU memory, on Lane::compute. Sharers, which may be
  // null, are asked where the reduction is complete.
  [[nodiscard]] Status take_in(devices::GpuSession& session, std::uint32_t i, std::byte const* received,
                               std::uint64_t bytes, Sharers* sharers = nullptr);
  // The next bytes of a copy or reduce, on Lane::compute.
  [[nodiscard]] Status work(devices::GpuSession& session, std::uint32_t i, std::uint64_t bytes);
  // Returns the next bytes of a send, at most `limit` and contiguous, and advances; queues nothing.
  [[nodiscard]] std::span<std::byte const> pass_source(std::uint32_t i, std::uint64_t limit);
  // The same for the destination of the next bytes of a recv that are stored unchanged.
  [[nodiscard]] std::span<std::byte> pass_destination(std::uint32_t i, std::uint64_t limit);
  // Copies the next bytes of a send to pinned memory, or to a peer's memory.
  [[nodiscard]] Status copy_out(devices::GpuSession& session, devices::Lane lane, std::uint32_t i, std::byte* to,
                                std::uint64_t bytes);

 private:
  // See Workspace::compute.
  [[nodiscard]] Status compute(devices::GpuSession& session, std::uint32_t i, std::span<std::byte> dst,
                               std::byte const* operand, std::byte const* other, Sharers* sharers = nullptr);

  Dtype const dtype_;
  ReduceOp const reduce_;
  Reductions const reductions_;
};

}  // namespace chorus::engine
