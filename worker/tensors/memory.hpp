// Blocks of tensor memory, 64-byte aligned. Blocks in host memory are recycled through a bounded pool, because fresh
// memory costs page faults. Blocks on GPUs come from the GPU's own arena.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "collectives/core/result.hpp"
#include "worker/memory/arena.hpp"
#include "worker/memory/regions/region.hpp"

namespace chorus::devices {
class GpuMemory;
class GpuUnit;
}  // namespace chorus::devices

namespace chorus::tensors {

// Bytes at a fixed address, from a pool, a client's region or a GPU's arena. The block keeps region or GPU memory
// alive. Immovable; shared by std::shared_ptr.
class Block {
 public:
  Block(std::byte* data, std::size_t size_bytes) : data_(data), size_bytes_(size_bytes) {}
  // A block in a region on `gpu`; if that is null, in host memory.
  Block(std::shared_ptr<memory::Region const> region, std::span<std::byte> bytes, devices::GpuUnit* gpu = nullptr)
      : data_(bytes.data()), size_bytes_(bytes.size()), region_(std::move(region)), gpu_(gpu) {}
  // A block in a GPU's arena. The unit outlives the block.
  Block(devices::GpuUnit& gpu, std::shared_ptr<devices::GpuMemory> memory);
  Block(Block const&) = delete;
  Block& operator=(Block const&) = delete;

  // Null for host memory. Otherwise only that GPU's work may access the addresses of data() and bytes().
  [[nodiscard]] devices::GpuUnit* gpu() const { return gpu_; }

  [[nodiscard]] std::byte* data() { return data_; }
  [[nodiscard]] std::byte const* data() const { return data_; }
  [[nodiscard]] std::size_t size_bytes() const { return size_bytes_; }
  [[nodiscard]] std::span<std::byte> bytes() { return {data_, size_bytes_}; }
  [[nodiscard]] std::span<std::byte const> bytes() const { return {data_, size_bytes_}; }

  // The client's region; null for other blocks. Contents of a region may change at any time.
  [[nodiscard]] memory::Region const* region() const { return region_.get(); }
  // Offset of the block in its region.
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

// Allocates a block on a GPU, which outlives the block. Contents are unspecified; size 0 is allowed. The first block
// allocates the GPU's whole arena from the driver, which takes long. Errors: GpuErrc::out_of_memory with the sizes,
// lost.
[[nodiscard]] Result<std::shared_ptr<Block>> acquire_on(devices::GpuUnit& gpu, std::uint64_t size_bytes);

// Copies a block to another one of the same size, and waits. Goes through host memory if two GPUs cannot access each
// other's memory. Errors: GpuErrc, if one of the blocks is on a GPU.
[[nodiscard]] Status copy(Block const& from, Block& to);
// The same from memory that does not belong to a client's region.
[[nodiscard]] Status copy(std::span<std::byte const> from, devices::GpuUnit* from_gpu, Block& to);

// State of a pool.
struct PoolUse {
  std::uint64_t in_use_bytes = 0;
  std::uint64_t kept_bytes = 0;     // for reuse
  std::uint64_t private_bytes = 0;  // in use, and private for lack of memory in the arena
  std::uint64_t lacks = 0;          // number of blocks that found no room in the arena
  std::string last_lack;            // the system's message
  std::uint64_t idle_bytes = 0;     // returned to the system by give_back()
  std::uint64_t needed_bytes = 0;   // returned to the system because a block found no room
};

// A pool of blocks in host memory. Thread-safe. Blocks may outlive the pool; they are then freed instead of kept.
//
// Allocating and freeing some GiB takes seconds. A thread that must not wait calls acquire_kept(), lets another thread
// call acquire(), or announces a block and lets other threads prepare it.
class Pool {
 public:
  // Runs work on another thread. Called until the pool is destroyed.
  using Elsewhere = std::function<void(std::function<void()> work)>;
  using TimePoint = std::chrono::steady_clock::time_point;

  // keep_bytes: how much free memory is kept for reuse. limit_bytes: limit of memory in use and kept; above it
  // acquire() fails. arena: if given, blocks lie in it, so that other workers of the host read them in place. If the
  // arena has no room, kept blocks are freed and the host's other workers are asked to free memory; if that does not
  // help, the block is private. elsewhere: frees large blocks; if empty, the thread of a block's last holder does,
  // which may take long.
  Pool(std::size_t keep_bytes, std::size_t limit_bytes, std::shared_ptr<memory::Arena> arena = nullptr,
       Elsewhere elsewhere = {});
  ~Pool();
  Pool(Pool const&) = delete;
  Pool& operator=(Pool const&) = delete;

  // Returns a block with unspecified contents; size 0 is allowed. May take long: allocates memory, that of large blocks
  // with several threads. Errors: TensorErrc::out_of_memory with the sizes.
  [[nodiscard]] Result<std::shared_ptr<Block>> acquire(std::size_t size_bytes);
  // Returns a kept block without waiting; null if none fits.
  [[nodiscard]] std::shared_ptr<Block> acquire_kept(std::size_t size_bytes);

  // Returns a block without memory, which prepare() adds, or a kept block, for which is_prepared() is true. Does not
  // wait. Only prepared memory counts as in use. Errors: out_of_memory, if the whole block would not fit now.
  [[nodiscard]] Result<std::shared_ptr<Block>> announce(std::size_t size_bytes);
  [[nodiscard]] static bool is_prepared(std::shared_ptr<Block> const& block);
  // Allocates the memory of a part of an announced block, once for each part. A part extends from a multiple of
  // prepare_unit_bytes to another one, or to the block's end. Errors: out_of_memory.
  [[nodiscard]] Status prepare(std::shared_ptr<Block> const& block, std::size_t offset, std::size_t size_bytes);
  static constexpr std::size_t prepare_unit_bytes = 2 << 20;

  // Returns memory to the system that has been kept since `since` or longer. May take long.
  void give_back(TimePoint since);

  // False for a block that is above the limit also while nothing else is in use.
  [[nodiscard]] bool can_ever_have(std::size_t size_bytes) const;
  [[nodiscard]] std::size_t limit_bytes() const;
  [[nodiscard]] PoolUse use() const;
  [[nodiscard]] std::size_t in_use_bytes() const;
  [[nodiscard]] std::size_t kept_bytes() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// Allocates a block on the GPU; if that is null, from the pool. Errors: those of acquire_on() and Pool::acquire().
[[nodiscard]] Result<std::shared_ptr<Block>> acquire(Pool& pool, devices::GpuUnit* gpu, std::uint64_t size_bytes);

}  // namespace chorus::tensors
