#include "worker/tensors/memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <list>
#include <new>
#include <string>

#include "collectives/core/assert.hpp"
#include "worker/devices/cuda/gpus.hpp"
#include "worker/tensors/errc.hpp"

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

// Within a GPU, or where one of them sees the other. False: they do not.
Result<bool> copy_in_place(std::span<std::byte const> from, devices::GpuUnit& from_gpu, Block& to, bool is_ours) {
  auto& to_gpu = *to.gpu();
  bool const is_one = &from_gpu == &to_gpu;
  // What a process has mapped of another one's memory is seen by the GPU that it was mapped for.
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

namespace {

constexpr std::size_t cache_line = 64;
constexpr std::size_t page = 4096;
constexpr std::size_t huge_page = 2 << 20;

// Large blocks begin on a page of their own, so that a neighbour never shares the translation of their ends.
std::size_t alignment_of(std::size_t size_bytes) {
  if (size_bytes >= huge_page) return huge_page;
  return size_bytes >= page ? page : cache_line;
}

std::size_t capacity_of(std::size_t size_bytes) {
  auto const unit = size_bytes >= page ? page : cache_line;
  return size_bytes == 0 ? unit : (size_bytes + unit - 1) / unit * unit;
}

std::byte* allocate_alone(std::size_t capacity) {
  auto const alignment = alignment_of(capacity);
  void* memory = nullptr;
  if (posix_memalign(&memory, alignment, capacity) != 0) return nullptr;
  // Advice only: without huge pages the block works as well, a little slower.
  if (capacity >= huge_page) madvise(memory, capacity / huge_page * huge_page, MADV_HUGEPAGE);
  return static_cast<std::byte*>(memory);
}

}  // namespace

struct Pool::State {
  struct Kept {
    std::byte* data;
    std::size_t capacity;
    std::multimap<std::size_t, std::list<Kept>::iterator>::iterator by_capacity;
  };

  State(std::size_t keep, std::size_t limit, std::shared_ptr<memory::Arena> shared)
      : keep_bytes(keep), limit_bytes(limit), arena(std::move(shared)) {}
  ~State() {
    for (auto const& block : kept) free(block.data);
  }
  State(State const&) = delete;
  State& operator=(State const&) = delete;

  [[nodiscard]] std::byte* allocate(std::size_t capacity) const {
    if (arena != nullptr)
      if (auto const block = arena->allocate(capacity); block.has_value()) return block->data();
    return allocate_alone(capacity);
  }
  void free(std::byte* data) const {
    if (arena != nullptr && arena->owns(data))
      arena->free(data);
    else
      std::free(data);
  }

  // What others on the host cannot read in place any more, after a failed call, makes room for what they can.
  [[nodiscard]] bool is_worth_keeping(std::byte const* data, std::size_t capacity) const {
    if (capacity > keep_bytes) return false;
    return arena == nullptr || !arena->owns(data) || arena->offset_of({data, capacity}).has_value();
  }

  // Below: with the lock held.

  // A kept block of this capacity, or of at most a quarter more.
  std::byte* take(std::size_t capacity, std::size_t& found_capacity) {
    auto const found = index.lower_bound(capacity);
    if (found == index.end() || found->first - capacity > capacity / 4) return nullptr;
    auto const block = found->second;
    auto* const data = block->data;
    found_capacity = block->capacity;
    remove(block);
    return data;
  }

  void remove(std::list<Kept>::iterator block) {
    kept_bytes -= block->capacity;
    index.erase(block->by_capacity);
    kept.erase(block);
  }

  void free_oldest() {
    auto const oldest = std::prev(kept.end());
    free(oldest->data);
    remove(oldest);
  }

  void keep_block(std::byte* data, std::size_t capacity) {
    while (!kept.empty() && kept_bytes + capacity > keep_bytes) free_oldest();
    kept.push_front({data, capacity, {}});
    kept.front().by_capacity = index.emplace(capacity, kept.begin());
    kept_bytes += capacity;
  }

  std::mutex mutex;
  std::size_t const keep_bytes;
  std::size_t const limit_bytes;
  std::shared_ptr<memory::Arena> const arena;
  std::size_t in_use_bytes = 0;
  std::size_t kept_bytes = 0;
  bool closed = false;
  std::list<Kept> kept;  // most recently used first
  std::multimap<std::size_t, std::list<Kept>::iterator> index;
};

namespace {

// The deleter of a block: gives its memory back to the pool, or frees it when the pool has gone.
template <class State>
struct GiveBack {
  std::shared_ptr<State> state;
  std::byte* data;
  std::size_t capacity;

  void operator()(Block* block) const {
    delete block;
    bool const is_worth_keeping = state->is_worth_keeping(data, capacity);
    std::unique_lock lock(state->mutex);
    state->in_use_bytes -= capacity;
    if (!state->closed && is_worth_keeping) {
      state->keep_block(data, capacity);
      return;
    }
    lock.unlock();
    state->free(data);
  }
};

Error out_of_memory(std::size_t size, std::size_t in_use, std::size_t limit) {
  return {TensorErrc::out_of_memory, std::to_string(size) + " bytes asked for, " + std::to_string(in_use) + " of " +
                                         std::to_string(limit) + " in use"};
}

}  // namespace

Pool::Pool(std::size_t keep_bytes, std::size_t limit_bytes, std::shared_ptr<memory::Arena> arena)
    : state_(std::make_shared<State>(keep_bytes, limit_bytes, std::move(arena))) {}

Pool::~Pool() {
  std::scoped_lock lock(state_->mutex);
  state_->closed = true;
  while (!state_->kept.empty()) state_->free_oldest();
}

Result<std::shared_ptr<Block>> Pool::acquire(std::size_t size_bytes) {
  std::unique_lock lock(state_->mutex);
  auto const limit = state_->limit_bytes;
  if (size_bytes > limit) return out_of_memory(size_bytes, state_->in_use_bytes, limit);
  auto capacity = capacity_of(size_bytes);
  auto* data = state_->take(capacity, capacity);
  if (data == nullptr) {
    if (capacity > limit || state_->in_use_bytes > limit - capacity)
      return out_of_memory(size_bytes, state_->in_use_bytes, limit);
    while (!state_->kept.empty() && state_->in_use_bytes + state_->kept_bytes > limit - capacity) state_->free_oldest();
  }
  state_->in_use_bytes += capacity;
  auto const in_use = state_->in_use_bytes;
  lock.unlock();

  if (data == nullptr) data = state_->allocate(capacity);
  if (data == nullptr) {
    lock.lock();
    state_->in_use_bytes -= capacity;
    return out_of_memory(size_bytes, in_use - capacity, limit);
  }
  return std::shared_ptr<Block>(new Block(data, size_bytes), GiveBack<State>{state_, data, capacity});
}

std::size_t Pool::in_use_bytes() const {
  std::scoped_lock lock(state_->mutex);
  return state_->in_use_bytes;
}

std::size_t Pool::kept_bytes() const {
  std::scoped_lock lock(state_->mutex);
  return state_->kept_bytes;
}

}  // namespace chorus::tensors
