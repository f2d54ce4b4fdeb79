#include "worker/devices/cuda/arena.hpp"

#include <algorithm>
#include <iterator>

#include "collectives/core/assert.hpp"

namespace chorus::devices {

GpuMemory::~GpuMemory() { arena_->give_back(bytes_.data()); }

GpuArena::GpuArena(Gpu& gpu, std::span<std::byte> whole) : gpu_(gpu), whole_(whole) { free_.emplace(0, whole.size()); }

GpuArena::~GpuArena() { gpu_.free(whole_.data()); }

Result<std::shared_ptr<GpuArena>> GpuArena::reserve(Gpu& gpu, std::uint64_t bytes) {
  auto const size = std::max(bytes / alignment_bytes * alignment_bytes, alignment_bytes);
  auto const memory = gpu.allocate(size);
  if (!memory) return memory.error();
  return std::shared_ptr<GpuArena>(new GpuArena(gpu, {*memory, size}));
}

Result<std::shared_ptr<GpuMemory>> GpuArena::acquire(std::uint64_t bytes) {
  std::scoped_lock lock(mutex_);
  auto const refuse = [&] {
    return Error(GpuErrc::out_of_memory, "cuda:" + std::to_string(gpu_.info().index) + ": " + std::to_string(bytes) +
                                             " bytes asked for, " + std::to_string(used_bytes_) + " of the arena's " +
                                             std::to_string(whole_.size()) + " in use");
  };
  if (bytes > whole_.size()) return refuse();
  auto const size = std::max<std::uint64_t>((bytes + alignment_bytes - 1) / alignment_bytes, 1) * alignment_bytes;
  auto const found = std::find_if(free_.begin(), free_.end(), [size](auto const& hole) { return hole.second >= size; });
  if (found == free_.end()) return refuse();
  auto const [offset, room] = *found;
  free_.erase(found);
  if (room != size) free_.emplace(offset + size, room - size);
  used_.emplace(offset, size);
  used_bytes_ += size;
  return std::make_shared<GpuMemory>(shared_from_this(), whole_.subspan(offset, bytes));
}

void GpuArena::give_back(std::byte const* data) {
  std::scoped_lock lock(mutex_);
  auto const used = used_.find(static_cast<std::uint64_t>(data - whole_.data()));
  CHORUS_ASSERT(used != used_.end(), "a block is given back once");
  auto offset = used->first;
  auto size = used->second;
  used_.erase(used);
  used_bytes_ -= size;
  auto const after = free_.lower_bound(offset);
  if (after != free_.begin()) {
    auto const before = std::prev(after);
    if (before->first + before->second == offset) {
      offset = before->first;
      size += before->second;
      free_.erase(before);
    }
  }
  if (after != free_.end() && after->first == offset + size) {
    size += after->second;
    free_.erase(after);
  }
  free_.emplace(offset, size);
}

std::uint64_t GpuArena::used_bytes() const {
  std::scoped_lock lock(mutex_);
  return used_bytes_;
}

}  // namespace chorus::devices
