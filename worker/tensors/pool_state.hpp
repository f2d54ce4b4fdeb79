// The state that a pool and its blocks share. Private to worker/tensors.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <limits>
#include <list>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "worker/memory/pages/errc.hpp"
#include "worker/memory/regions/shared_room.hpp"
#include "worker/tensors/memory.hpp"
#include "worker/tensors/private_memory.hpp"

namespace chorus::tensors {

struct Pool::State {
  // Smaller blocks are freed at once, because handing them to another thread takes as long.
  static constexpr std::size_t freed_here_bytes = huge_page;
  // An arena gets memory in units, so it has a little more than the sum of its blocks.
  static constexpr std::uint64_t ceiling_slack_bytes = 2 * memory::region_unit_bytes;

  struct Kept;
  using Index = std::multimap<std::size_t, std::list<Kept>::iterator>;
  struct Kept {
    std::byte* data;
    std::size_t capacity;
    bool is_shared;
    TimePoint since;
    Index::iterator by_capacity;
    [[nodiscard]] std::size_t private_bytes() const { return is_shared ? 0 : capacity; }
  };

  State(std::size_t keep, std::size_t limit, std::shared_ptr<memory::Arena> shared, Elsewhere other_thread)
      : keep_bytes(keep),
        limit_bytes(std::min(limit, std::numeric_limits<std::size_t>::max() - ceiling_slack_bytes)),
        arena(std::move(shared)),
        elsewhere(std::move(other_thread)) {
    change_private(0);
  }
  ~State() {
    for (auto const& block : kept) free({block.data, block.capacity, block.private_bytes()});
  }
  State(State const&) = delete;
  State& operator=(State const&) = delete;

  // Blocks on their way back to the system.
  struct Going {
    struct Part {
      std::byte* data;
      std::size_t capacity;
      std::size_t private_bytes;  // that count in State::private_bytes
    };
    void add(Part const& part) {
      blocks.push_back(part);
      bytes += part.capacity;
    }
    std::vector<Part> blocks;
    std::size_t bytes = 0;
  };

  [[nodiscard]] bool is_shared(std::byte const* data) const { return arena != nullptr && arena->owns(data); }

  // Returns null if the arena has no memory.
  [[nodiscard]] std::byte* allocate_shared(std::size_t capacity) {
    if (arena == nullptr) return nullptr;
    auto block = arena->allocate(capacity);
    auto const is_limit = [&] { return block.error().code == memory::MemoryErrc::at_ceiling; };
    if (!block && release_unused() != 0) block = arena->allocate(capacity);
    while (!block && give_way(capacity, !is_limit()) != 0) block = arena->allocate(capacity);
    if (block) return block->data();
    if (!is_limit()) has_lacked(block.error().detail);
    return nullptr;
  }

  [[nodiscard]] std::byte* allocate_alone(std::size_t capacity) {
    auto const fits = [&] {
      auto const all = private_bytes + (arena != nullptr ? arena->backed_bytes() : 0);
      return all + capacity <= limit_bytes + ceiling_slack_bytes;
    };
    auto* data = fits() ? allocate_private(capacity) : nullptr;
    if (data == nullptr) release_unused();
    while (data == nullptr && give_way(capacity, false) != 0) data = fits() ? allocate_private(capacity) : nullptr;
    if (data == nullptr && fits()) data = allocate_private(capacity);
    if (data != nullptr) change_private(capacity);
    return data;
  }

  void free(Going::Part const& block) {
    if (is_shared(block.data)) return arena->free(block.data);
    free_private(block.data, block.capacity);
    change_private(0 - std::uint64_t{block.private_bytes});
  }

  void free(Going const& going) {
    for (auto const& block : going.blocks) free(block);
  }

  // Takes a kept private block; null if none fits.
  std::byte* take_private(std::size_t& capacity) {
    std::scoped_lock const lock(mutex);
    auto const wanted = capacity;
    auto* const data = take(false, capacity);
    in_use_bytes += capacity - wanted;
    return data;
  }

  // Allocates the memory of a part of a block in the arena. Frees kept blocks if there is no room.
  [[nodiscard]] Status prepare_shared(std::span<std::byte> part) {
    if (is_short_of(part.size())) {
      std::unique_lock lock(mutex);
      has_gone.wait(lock, [this] { return leaving_bytes == 0; });
    }
    if (is_short_of(part.size())) release_unused();
    if (is_short_of(part.size())) give_way(part.size(), true);
    auto prepared = arena->prepare(part);
    auto const is_limit = [&] { return !prepared && prepared.error().code == memory::MemoryErrc::at_ceiling; };
    if (is_limit() && release_unused() != 0) prepared = arena->prepare(part);
    while (is_limit() && give_way(part.size(), false) != 0) prepared = arena->prepare(part);
    return prepared;
  }
  static bool is_short_of(std::uint64_t bytes) {
    auto const room = memory::shared_room();
    return room && room->free_bytes < bytes;
  }

  // Changes private_bytes, and lowers or raises the arena's ceiling accordingly.
  void change_private(std::uint64_t by) {
    auto const now = private_bytes.fetch_add(by) + by;
    if (arena != nullptr) arena->allow(limit_bytes - std::min<std::uint64_t>(limit_bytes, now) + ceiling_slack_bytes);
  }

  void has_lacked(std::string detail) {
    memory::tell_of_lack();
    std::scoped_lock const lock(mutex);
    ++lacks;
    last_lack = std::move(detail);
  }

  // Frees blocks that have been kept since `since` or longer, oldest first, until `wanted` bytes are freed. Returns the
  // number of bytes. `counter` counts each block before it is freed, which takes a while.
  std::uint64_t give_back(TimePoint since, std::uint64_t wanted, bool only_shared, std::uint64_t& counter) {
    std::uint64_t given = 0;
    while (given < wanted) {
      std::unique_lock lock(mutex);
      auto const found = oldest(only_shared);
      if (found == kept.end() || found->since > since) break;
      auto const block = *found;
      remove(found);
      counter += block.capacity;
      lock.unlock();
      free({block.data, block.capacity, block.private_bytes()});
      given += block.capacity;
    }
    return given;
  }

  // Frees kept blocks for a block of this capacity. Returns the number of bytes; 0 if there are no kept blocks.
  std::uint64_t give_way(std::size_t capacity, bool only_shared) {
    auto const given = give_back(TimePoint::max(), capacity, only_shared, needed_bytes);
    if (given != 0) release_unused();  // the arena may keep a unit after its last block
    return given;
  }

  // Frees memory that the arena has and no block uses. Returns the number of bytes.
  std::uint64_t release_unused() {
    auto const given = arena != nullptr ? arena->release_unused(TimePoint::max()) : 0;
    std::scoped_lock const lock(mutex);
    needed_bytes += given;
    return given;
  }

  // A block of the arena that is no longer shared, after a failed call, is not kept: a new block can be shared again.
  [[nodiscard]] bool is_worth_keeping(std::byte const* data, std::size_t capacity) const {
    if (capacity > keep_bytes) return false;
    return !is_shared(data) || arena->offset_of({data, capacity}).has_value();
  }

  // The functions below are called with the lock held.

  // Takes a kept block of this capacity, or of at most a quarter more; null if there is none.
  std::byte* take(bool shared, std::size_t& capacity) {
    auto& index = by_capacity[shared ? 1 : 0];
    auto const found = index.lower_bound(capacity);
    if (found == index.end() || found->first - capacity > capacity / 4) return nullptr;
    auto const block = found->second;
    auto* const data = block->data;
    capacity = block->capacity;
    remove(block);
    return data;
  }

  void remove(std::list<Kept>::iterator block) {
    kept_bytes -= block->capacity;
    by_capacity[block->is_shared ? 1 : 0].erase(block->by_capacity);
    kept.erase(block);
  }

  std::list<Kept>::iterator oldest(bool only_shared) {
    for (auto block = kept.end(); block != kept.begin();)
      if (--block; block->is_shared || !only_shared) return block;
    return kept.end();
  }

  // Moves a kept block to `going`, to be freed without the lock.
  void give_up(std::list<Kept>::iterator block, Going& going) {
    going.add({block->data, block->capacity, block->private_bytes()});
    remove(block);
  }

  void keep_block(std::byte* data, std::size_t capacity, Going& going) {
    while (!kept.empty() && kept_bytes + capacity > keep_bytes) give_up(std::prev(kept.end()), going);
    kept.push_front({data, capacity, is_shared(data), std::chrono::steady_clock::now(), {}});
    kept.front().by_capacity = by_capacity[kept.front().is_shared ? 1 : 0].emplace(capacity, kept.begin());
    kept_bytes += capacity;
  }

  // Frees the blocks, if they are large on another thread.
  static void dispose(std::shared_ptr<State> const& state, std::unique_lock<std::mutex>& lock, Going going) {
    if (going.bytes < freed_here_bytes || !state->elsewhere || state->closed) {
      lock.unlock();
      state->free(going);
      return lock.lock();
    }
    state->leaving_bytes += going.bytes;
    state->elsewhere([state, going = std::move(going)] {
      state->free(going);
      std::scoped_lock const again(state->mutex);
      state->leaving_bytes -= going.bytes;
      state->has_gone.notify_all();
    });
  }

  // Frees about `wanted` bytes of kept shared blocks on another thread. Returns how much memory is being freed.
  static std::uint64_t make_way(std::shared_ptr<State> const& state, std::size_t wanted) {
    std::unique_lock lock(state->mutex);
    Going going;
    for (auto block = state->oldest(true); block != state->kept.end() && going.bytes < wanted;
         block = state->oldest(true))
      state->give_up(block, going);
    state->needed_bytes += going.bytes;
    dispose(state, lock, std::move(going));
    return state->leaving_bytes;
  }

  // Counts `bytes` more as in use, and frees kept blocks for them. False if the limit is reached. A large block waits
  // for memory that is being freed.
  static bool charge(std::shared_ptr<State> const& state, std::size_t bytes) {
    std::unique_lock lock(state->mutex);
    auto const limit = state->limit_bytes;
    if (bytes > limit || state->in_use_bytes > limit - bytes) return false;
    state->in_use_bytes += bytes;
    Going going;
    while (!state->kept.empty() && state->in_use_bytes + state->kept_bytes > limit)
      state->give_up(std::prev(state->kept.end()), going);
    dispose(state, lock, std::move(going));
    auto const fits = [&] { return state->leaving_bytes == 0 || state->in_use_bytes + state->leaving_bytes <= limit; };
    if (bytes >= freed_here_bytes) state->has_gone.wait(lock, fits);
    return true;
  }

  std::mutex mutex;
  std::size_t const keep_bytes;
  std::size_t const limit_bytes;
  std::shared_ptr<memory::Arena> const arena;
  Elsewhere const elsewhere;
  std::condition_variable has_gone;
  std::size_t in_use_bytes = 0;
  std::size_t kept_bytes = 0;
  std::size_t leaving_bytes = 0;  // being freed elsewhere
  bool closed = false;
  std::list<Kept> kept;                         // most recently used first
  std::array<Index, 2> by_capacity;             // of private blocks, and of the arena's
  std::atomic<std::uint64_t> private_bytes{0};  // outside the arena: in use and kept
  std::uint64_t unshared_bytes = 0;             // in use, and not shared for lack of memory
  std::uint64_t lacks = 0, idle_bytes = 0, needed_bytes = 0;
  std::string last_lack;
};

}  // namespace chorus::tensors
