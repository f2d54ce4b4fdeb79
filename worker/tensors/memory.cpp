#include "worker/tensors/memory.hpp"

#include <algorithm>

#include "collectives/core/assert.hpp"
#include "worker/devices/cuda/gpus.hpp"

namespace chorus::tensors {

Block::Block(devices::GpuUnit& gpu, std::shared_ptr<devices::GpuMemory> memory)
    : data_(memory->bytes().data()), size_bytes_(memory->bytes().size()), gpu_(&gpu), gpu_memory_(std::move(memory)) {}

Result<std::shared_ptr<Block>> acquire_on(devices::GpuUnit& gpu, std::uint64_t size_bytes) {
  auto memory = gpu.acquire(size_bytes);
  if (!memory) {
    gpu.saw(memory.error());
    return memory.error();
  }
  return std::make_shared<Block>(gpu, std::move(*memory));
}

namespace {

// Copies within one GPU, or between two of which one can access the other's memory. False if neither can.
Result<bool> copy_in_place(std::span<std::byte const> from, devices::GpuUnit& from_gpu, Block& to, bool is_ours) {
  auto& to_gpu = *to.gpu();
  bool const is_one = &from_gpu == &to_gpu;
  // Memory of another process can be accessed only by the GPU for which it was mapped.
  bool const may_see = is_ours && to.region() == nullptr;
  auto* by = is_one || (may_see && to_gpu.sees(from_gpu)) ? &to_gpu : nullptr;
  if (by == nullptr && may_see && from_gpu.sees(to_gpu)) by = &from_gpu;
  if (by == nullptr) return false;
  if (!is_one) {
    devices::GpuUse use;
    use.peer_bytes = from.size();
    by->count(use);
  }
  devices::GpuCopy const all{to.data(), from.data(), from.size()};
  if (auto const copied = by->copy({&all, 1}); !copied) return copied.error();
  return true;
}

Status copy(std::span<std::byte const> from, devices::GpuUnit* from_gpu, Block& to, bool is_ours) {
  CHORUS_ASSERT(from.size() == to.size_bytes(), "a copy fits");
  if (from_gpu == nullptr && to.gpu() == nullptr) {
    std::copy_n(from.data(), from.size(), to.data());
    return ok();
  }
  if (from_gpu == nullptr) return to.gpu()->upload(to.data(), from);
  if (to.gpu() == nullptr) return from_gpu->download(to.bytes(), from.data());
  auto const copied = copy_in_place(from, *from_gpu, to, is_ours);
  if (!copied) return copied.error();
  if (*copied) return ok();
  auto status = ok();
  auto left = to.bytes();
  auto const pass_on = [&](std::span<std::byte const> piece) {
    if (status) status = to.gpu()->upload(left.data(), piece);
    left = left.subspan(piece.size());
  };
  if (auto const read = from_gpu->read(from, pass_on); !read) return read;
  return status;
}

}  // namespace

Status copy(Block const& from, Block& to) { return copy(from.bytes(), from.gpu(), to, from.region() == nullptr); }

Status copy(std::span<std::byte const> from, devices::GpuUnit* from_gpu, Block& to) {
  return copy(from, from_gpu, to, true);
}

Result<std::shared_ptr<Block>> acquire(Pool& pool, devices::GpuUnit* gpu, std::uint64_t size_bytes) {
  return gpu != nullptr ? acquire_on(*gpu, size_bytes) : pool.acquire(size_bytes);
}

}  // namespace chorus::tensors
