// The memory that a run reads and writes on this rank.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "collectives/plan/program.hpp"
#include "http/json/problem.hpp"
#include "worker/devices/cuda/gpus.hpp"
#include "worker/service/operands/input_adapter.hpp"
#include "worker/service/operands/run_order.hpp"
#include "worker/tensors/store.hpp"

namespace chorus::service {

// The problem region_damaged of a block in a region whose memory its client has truncated.
[[nodiscard]] std::optional<http::Problem> damage_of(tensors::Block const& block);

// This rank's part in the plan.
struct RunPart {
  std::shared_ptr<plan::Program const> program;
  std::uint64_t input_elements = 0;  // size of the memory that the program addresses
  std::uint64_t output_elements = 0;
  bool brings = false;  // a tensor; false for a barrier
  bool gets = false;    // a result
  [[nodiscard]] bool overwrites() const { return program->spec.in_place && gets; }
};

// Input and output of a run, and the owners of that memory.
struct RunMemory {
  RunPart part;
  Dtype dtype = Dtype::f32;
  devices::GpuUnit* gpu = nullptr;  // home of input and output; null: host memory
  std::shared_ptr<void const> source_owner;
  std::span<std::byte const> source;
  std::shared_ptr<tensors::Block> beside;                  // holds the result, or else:
  std::shared_ptr<tensors::Store::Exclusive> overwritten;  // the tensor's own memory
  // For data that travels in another form: the memory of that form, unless values are scaled in place.
  std::optional<engine::Carried> carried;
  bool comes_carried = false;                                     // the input adapter makes that form
  std::shared_ptr<tensors::Block> carried_input, carried_output;  // the same block if in place
  std::shared_ptr<tensors::Residuals::Use> residual;              // with error feedback, if this rank contributes
  std::shared_ptr<InputAdapter> level;                            // set if the worker contributes several tensors
  std::vector<std::shared_ptr<tensors::Block const>> clients;     // blocks among these in clients' regions
  ResultPlace place;
  std::uint64_t unchanged_version = 0;  // of a tensor that was only read

  [[nodiscard]] std::span<std::byte const> input() const {
    if (part.program->input.empty()) return {};
    return overwritten ? overwritten->bytes() : source;
  }
  [[nodiscard]] std::span<std::byte> output() const {
    if (part.program->output.empty()) return {};
    return overwritten ? overwritten->bytes() : beside->bytes();
  }
  // Buffers that the program reads and writes.
  [[nodiscard]] std::span<std::byte const> run_input() const {
    return carried_input && !part.program->input.empty() ? carried_input->bytes() : input();
  }
  [[nodiscard]] std::span<std::byte> run_output() const {
    return carried_output && !part.program->output.empty() ? carried_output->bytes() : output();
  }
  // Destination of the converted input.
  [[nodiscard]] std::span<std::byte> converted() const {
    return carried_input ? carried_input->bytes() : overwritten->bytes();
  }
  // True if that is the tensor's own memory.
  [[nodiscard]] bool converts_in_place() const { return carried && part.brings && overwritten && !carried_input; }
  [[nodiscard]] engine::Feedback feedback() const {
    return residual ? engine::Feedback{residual->residual(), residual->lost()} : engine::Feedback();
  }
  [[nodiscard]] devices::GpuUnit* run_gpu() const { return carried ? carried->place(gpu) : gpu; }
  [[nodiscard]] std::uint64_t bytes() const {
    if (level) return level->elements() * element_bytes(dtype);
    return std::max<std::uint64_t>(input().size(), output().size());
  }
  [[nodiscard]] std::shared_ptr<void const> owner() const {
    std::vector<std::shared_ptr<void const>> owners{source_owner, beside, overwritten, carried_input, carried_output};
    return std::make_shared<std::vector<std::shared_ptr<void const>>>(std::move(owners));
  }
  [[nodiscard]] HeldResult result() const {
    auto held = !part.gets    ? HeldResult::unchanged(unchanged_version)
                : level       ? level->results()
                : overwritten ? HeldResult(overwritten)
                              : HeldResult(place.tensor, dtype, place.shape, place.version, beside);
    held.keep_with(residual);
    return held;
  }

  void note(std::shared_ptr<tensors::Block const> block) {
    if (block->region() != nullptr) clients.push_back(std::move(block));
  }
  // region_damaged if a client has truncated memory of the run.
  [[nodiscard]] std::optional<http::Problem> damage() const;
};

}  // namespace chorus::service
