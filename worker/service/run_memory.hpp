// What a run reads and writes on this rank. Internal to the runner.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "collectives/plan/program.hpp"
#include "http/problem.hpp"
#include "worker/devices/cuda/gpus.hpp"
#include "worker/service/lower_level.hpp"
#include "worker/service/run_order.hpp"
#include "worker/tensors/store.hpp"

namespace chorus::service {

// What the plan wants of this rank.
struct RunPart {
  std::shared_ptr<plan::Program const> program;
  std::uint64_t input_elements = 0;  // of the memory that the program addresses
  std::uint64_t output_elements = 0;
  bool brings = false;  // a tensor; a barrier does not
  bool gets = false;    // a result
  [[nodiscard]] bool overwrites() const { return program->spec.in_place && gets; }
};

// Where a run reads and writes, and what keeps that memory alive.
struct RunMemory {
  RunPart part;
  Dtype dtype = Dtype::f32;
  devices::GpuUnit* gpu = nullptr;  // where input and output lie; null: the host's memory
  std::shared_ptr<void const> source_owner;
  std::span<std::byte const> source;
  std::shared_ptr<tensors::Block> beside;                      // the result, or
  std::shared_ptr<tensors::Store::Exclusive> overwritten;      // ... the tensor's own memory
  std::shared_ptr<LowerLevel> level;                           // where the worker brings several tensors
  std::vector<std::shared_ptr<tensors::Block const>> clients;  // of these, what lies in clients' regions
  ResultPlace place;
  std::uint64_t unchanged_version = 0;  // of a tensor that only gave

  [[nodiscard]] std::span<std::byte const> input() const {
    if (part.program->input.empty()) return {};
    return overwritten ? overwritten->bytes() : source;
  }
  [[nodiscard]] std::span<std::byte> output() const {
    if (part.program->output.empty()) return {};
    return overwritten ? overwritten->bytes() : beside->bytes();
  }
  [[nodiscard]] std::uint64_t bytes() const { return std::max<std::uint64_t>(input().size(), output().size()); }
  [[nodiscard]] std::shared_ptr<void const> owner() const {
    if (overwritten) return overwritten;
    return std::make_shared<std::pair<std::shared_ptr<void const>, std::shared_ptr<void const>>>(source_owner, beside);
  }
  [[nodiscard]] HeldResult result() const {
    if (!part.gets) return HeldResult::unchanged(unchanged_version);
    if (level) return level->results();
    if (overwritten) return HeldResult(overwritten);
    return {place.tensor, dtype, place.shape, place.version, beside};
  }

  void note(std::shared_ptr<tensors::Block const> block) {
    if (block->region() != nullptr) clients.push_back(std::move(block));
  }
  // region_damaged if a client has truncated what the run reads or writes.
  [[nodiscard]] std::optional<http::Problem> damage() const;
};

}  // namespace chorus::service
