// Blocks of tensor memory, 64-byte aligned, recycled through a bounded pool: a fresh 64 MiB block costs 16,384 page
// faults. Those on GPUs come from the GPU's own arena.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "collectives/core/result.hpp"
#include "worker/memory/arena.hpp"
#include "worker/memory/region.hpp"

namespace chorus::devices {
class GpuMemory;
class GpuUnit;
}  // namespace chorus::devices

namespace chorus::tensors {

// Bytes at a fixed place: the pool's, or of a client's region or a GPU's memory, which the block then holds. Immovable;
// shared by std::shared_ptr.
class Block {
 public:
  Block(std::byte* data, std::size_t size_bytes) : data_(data), size_bytes_(size_bytes) {}
  // On `gpu`, or, where that is null, in the host's memory.
  Block(std::shared_ptr<memory::Region const> region, std::span<std::byte> bytes, devices::GpuUnit* gpu = nullptr)
      : data_(bytes.data()), size_bytes_(bytes.size()), region_(std::move(region)), gpu_(gpu) {}
  // The unit, whose memory it is, outlives the block.
  Block(devices::GpuUnit& gpu, std::shared_ptr<devices::GpuMemory> memory);
  Block(Block const&) = delete;
  Block& operator=(Block const&) = delete;

  // Null: the host's memory. Otherwise data() and bytes() are addresses where only that GPU's work may look.
  [[nodiscard]] devices::GpuUnit* gpu() const { return gpu_; }

  [[nodiscard]] std::byte* data() { return data_; }
  [[nodiscard]] std::byte const* data() const { return data_; }
  [[nodiscard]] std::size_t size_bytes() const { return size_bytes_; }
  [[nodiscard]] std::span<std::byte> bytes() { return {data_, size_bytes_}; }
  [[nodiscard]] std::span<std::byte const> bytes() const { return {data_, size_bytes_}; }

  // Null unless it is a client's. What lies in a region may change at any time.
  [[nodiscard]] memory::Region const* region() const { return region_.get(); }
  // Of a block in a region: where it begins there.
  [[nodiscard]] std::uint64_t region_offset() const {
    return static_cast<std::uint64_t>(data_ - region_->bytes().data());
  }

 private:
  std::byte* data_;
  std::size_t size_bytes_;
  std::shared_ptr<memory::Region const> region_;
  devices::GpuUnit* gpu_ = nullptr;
  std::shared_ptr<devices::GpuMemory> gpu_memory_;
};

// On the GPU, which outlives the block. Contents are unspecified. size 0 is fine. The first block there takes the whole
// arena from the driver, which lasts. Errors: GpuErrc::out_of_memory with the sizes, lost.
[[nodiscard]] Result<std::shared_ptr<Block>> acquire_on(devices::GpuUnit& gpu, std::uint64_t size_bytes);

// Of the same size, from one place to the other, and waits; between GPUs that do not see each other's memory through
// the host's. Errors: GpuErrc, where one of them is on a GPU.
[[nodiscard]] Status copy(Block const& from, Block& to);
// The same of memory that is no client's.
[[nodiscard]] Status copy(std::span<std::byte const> from, devices::GpuUnit* from_gpu, Block& to);

// Thread-safe. Blocks may outlive the pool; they are then freed instead of kept.
class Pool {
 public:
  // keep_bytes: how much free memory is kept for reuse. limit_bytes: total in use and kept; above it acquire fails.
  // Blocks lie in the arena, if there is one, as far as it has room, so that others on the host read them in place.
  Pool(std::size_t keep_bytes, std::size_t limit_bytes, std::shared_ptr<memory::Arena> arena = nullptr);
  ~Pool();
  Pool(Pool const&) = delete;
  Pool& operator=(Pool const&) = delete;

  // Contents are unspecified. size 0 is fine. Errors: TensorErrc::out_of_memory with the sizes.
  [[nodiscard]] Result<std::shared_ptr<Block>> acquire(std::size_t size_bytes);

  [[nodiscard]] std::size_t in_use_bytes() const;
  [[nodiscard]] std::size_t kept_bytes() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// On the GPU, or, where that is null, from the pool. Errors: theirs.
[[nodiscard]] Result<std::shared_ptr<Block>> acquire(Pool& pool, devices::GpuUnit* gpu, std::uint64_t size_bytes);

}  // namespace chorus::tensors
