#include <algorithm>
#include <limits>
#include <mutex>
#include <string>
#include <utility>

#include "worker/memory/pages/touch.hpp"
#include "worker/tensors/errc.hpp"
#include "worker/tensors/pool_state.hpp"

namespace chorus::tensors {

namespace {

// The deleter of a block: returns its memory to the pool, or frees it if the pool has been destroyed.
template <class State>
struct GiveBack {
  std::shared_ptr<State> state;
  std::byte* data;
  std::size_t capacity;
  // With the lock held:
  std::size_t charged;   // bytes that count as in use
  std::size_t prepared;  // bytes that have memory
  bool is_unshared;      // counts in unshared_bytes

  void operator()(Block* block) const {
    delete block;
    bool const is_worth_keeping = state->is_worth_keeping(data, capacity);
    typename State::Going going;
    std::unique_lock lock(state->mutex);
    state->in_use_bytes -= charged;
    if (is_unshared) state->unshared_bytes -= capacity;
    if (!state->closed && is_worth_keeping && prepared == capacity)
      state->keep_block(data, capacity, going);
    else
      going.add({data, capacity, state->is_shared(data) ? 0 : prepared});
    State::dispose(state, lock, std::move(going));
  }
};

template <class State>
std::shared_ptr<Block> make_block(std::shared_ptr<State> const& state, std::byte* data, std::size_t size_bytes,
                                  std::size_t capacity, std::size_t has, bool is_unshared = false) {
  return {new Block(data, size_bytes), GiveBack<State>{state, data, capacity, has, has, is_unshared}};
}

Error out_of_memory(std::size_t size, std::size_t in_use, std::size_t limit) {
  return {TensorErrc::out_of_memory, std::to_string(size) + " bytes asked for, " + std::to_string(in_use) + " of " +
                                         std::to_string(limit) + " in use"};
}

}  // namespace

Pool::Pool(std::size_t keep_bytes, std::size_t limit_bytes, std::shared_ptr<memory::Arena> arena, Elsewhere elsewhere)
    : state_(std::make_shared<State>(keep_bytes, limit_bytes, std::move(arena), std::move(elsewhere))) {}

Pool::~Pool() {
  State::Going going;
  {
    std::scoped_lock lock(state_->mutex);
    state_->closed = true;
    while (!state_->kept.empty()) state_->give_up(std::prev(state_->kept.end()), going);
  }
  state_->free(going);
}

std::shared_ptr<Block> Pool::acquire_kept(std::size_t size_bytes) {
  if (size_bytes > state_->limit_bytes) return nullptr;
  std::unique_lock lock(state_->mutex);
  auto capacity = capacity_of(size_bytes);
  auto* const data = state_->take(state_->arena != nullptr, capacity);
  if (data == nullptr) return nullptr;
  state_->in_use_bytes += capacity;
  lock.unlock();
  return make_block(state_, data, size_bytes, capacity, capacity);
}

Result<std::shared_ptr<Block>> Pool::acquire(std::size_t size_bytes) {
  if (auto kept = acquire_kept(size_bytes)) return kept;
  auto const limit = state_->limit_bytes;
  auto capacity = size_bytes > limit ? size_bytes : capacity_of(size_bytes);
  auto const in_use = in_use_bytes();
  if (!State::charge(state_, capacity)) return out_of_memory(size_bytes, in_use, limit);
  if (auto* const data = state_->allocate_shared(capacity); data != nullptr)
    return make_block(state_, data, size_bytes, capacity, capacity);
  bool const is_unshared = state_->arena != nullptr;
  auto* data = is_unshared ? state_->take_private(capacity) : nullptr;
  if (data == nullptr) data = state_->allocate_alone(capacity);
  std::scoped_lock const lock(state_->mutex);
  if (data == nullptr) {
    state_->in_use_bytes -= capacity;
    auto error = out_of_memory(size_bytes, in_use, limit);
    error.detail += ", and what is free lies in gaps that are too small, or the system has no more";
    return error;
  }
  if (is_unshared) state_->unshared_bytes += capacity;
  return make_block(state_, data, size_bytes, capacity, capacity, is_unshared);
}

Result<std::shared_ptr<Block>> Pool::announce(std::size_t size_bytes) {
  if (auto kept = acquire_kept(size_bytes)) return kept;
  auto const limit = state_->limit_bytes;
  auto const capacity = size_bytes > limit ? size_bytes : capacity_of(size_bytes);
  auto const in_use = in_use_bytes();
  if (capacity > limit || in_use > limit - capacity) return out_of_memory(size_bytes, in_use, limit);
  if (state_->arena != nullptr) {
    auto reserved = state_->arena->reserve(capacity);
    if (!reserved) reserved = state_->arena->reserve(capacity, State::make_way(state_, capacity));
    if (reserved) return make_block(state_, reserved->bytes.data(), size_bytes, capacity, 0);
    state_->has_lacked(reserved.error().detail);
  }
  auto* const data = allocate_private(capacity);
  if (data == nullptr) return out_of_memory(size_bytes, in_use, limit);
  bool const is_unshared = state_->arena != nullptr;
  std::scoped_lock const lock(state_->mutex);
  if (is_unshared) state_->unshared_bytes += capacity;
  return make_block(state_, data, size_bytes, capacity, 0, is_unshared);
}

bool Pool::is_prepared(std::shared_ptr<Block> const& block) {
  auto const* const made = std::get_deleter<GiveBack<State>>(block);
  std::scoped_lock const lock(made->state->mutex);
  return made->prepared == made->capacity;
}

Status Pool::prepare(std::shared_ptr<Block> const& block, std::size_t offset, std::size_t size_bytes) {
  auto& made = *std::get_deleter<GiveBack<State>>(block);
  auto const end = offset + size_bytes == block->size_bytes() ? made.capacity : offset + size_bytes;
  std::span const part(made.data + offset, end - offset);
  auto const in_use = in_use_bytes();
  if (!State::charge(state_, part.size())) return out_of_memory(part.size(), in_use, state_->limit_bytes);
  {
    std::scoped_lock const lock(state_->mutex);
    made.charged += part.size();
  }
  if (!state_->is_shared(made.data)) {
    memory::touch_all(part);
    state_->change_private(part.size());
  } else if (auto const prepared = state_->prepare_shared(part); !prepared) {
    return Error(TensorErrc::out_of_memory, prepared.error().detail);
  }
  bool const is_lack = state_->is_shared(made.data) && !state_->arena->offset_of(part);
  std::unique_lock lock(state_->mutex);
  made.prepared += part.size();
  if (!is_lack || std::exchange(made.is_unshared, true)) return ok();
  state_->unshared_bytes += made.capacity;
  lock.unlock();
  state_->has_lacked(std::to_string(part.size()) + " bytes of shared memory: the system has no more");
  return ok();
}

void Pool::give_back(TimePoint since) {
  auto const blocks = state_->give_back(since, std::numeric_limits<std::uint64_t>::max(), false, state_->idle_bytes);
  auto* const arena = state_->arena.get();
  if (arena == nullptr) return;
  // If blocks were freed, the arena also releases the units that it keeps after them.
  auto const units = arena->release_unused(blocks != 0 ? TimePoint::max() : since);
  auto const retired = arena->retire_left(since);
  std::scoped_lock const lock(state_->mutex);
  state_->idle_bytes += (blocks == 0 ? units : 0) + retired;
}

PoolUse Pool::use() const {
  auto const& state = *state_;
  std::scoped_lock const lock(state_->mutex);
  return {state.in_use_bytes, state.kept_bytes, state.unshared_bytes, state.lacks,
          state.last_lack,    state.idle_bytes, state.needed_bytes};
}

bool Pool::can_ever_have(std::size_t size_bytes) const {
  return size_bytes <= state_->limit_bytes && capacity_of(size_bytes) <= state_->limit_bytes;
}

std::size_t Pool::limit_bytes() const { return state_->limit_bytes; }

std::size_t Pool::in_use_bytes() const {
  std::scoped_lock lock(state_->mutex);
  return state_->in_use_bytes;
}

std::size_t Pool::kept_bytes() const {
  std::scoped_lock lock(state_->mutex);
  return state_->kept_bytes;
}

}  // namespace chorus::tensors
