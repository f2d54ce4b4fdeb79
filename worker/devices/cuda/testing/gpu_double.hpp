// A GPU double for tests, in host memory. It does queued work late, one operation at a time, in a random order among
// its queues. Memory is poisoned when it is allocated. Its addresses are mapped without access rights, so that code
// that accesses them without the device crashes.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <random>
#include <shared_mutex>
#include <span>
#include <string>
#include <vector>

#include "worker/devices/cuda/gpu.hpp"

namespace chorus::devices::testing {

// Thread-safe, like every Gpu.
class GpuDouble final : public Gpu {
 public:
  explicit GpuDouble(std::uint32_t index = 0, std::uint64_t memory_bytes = 256 << 20, std::uint64_t seed = 1);
  ~GpuDouble() override;

  // Makes the operation fail that is queued after the next `count` ones; with GpuErrc::lost, all later calls fail, too.
  void fail_after(std::int64_t count, GpuErrc how);
  // The GPU is lost once `flag` is true. `flag` outlives the double. For callers that can only set a flag, such as
  // signal handlers.
  void lost_when(std::atomic<bool> const& flag) { lost_when_ = &flag; }
  // Hangs: accepts work, but does none of it until go_on(). Until then destructors of sessions with work wait.
  void hang() { hangs_ = true; }
  void go_on() {
    hangs_ = false;
    hangs_.notify_all();
  }
  // The longest time that a call waits for the holder of hold_still().
  void wait_for_still(std::chrono::milliseconds patience) { patience_with_still_ = patience; }
  // Number of queued operations that are done.
  [[nodiscard]] std::uint64_t operations() const { return operations_; }
  void share_nothing() { shares_ = false; }  // simulates a system without handles
  // Makes open() fail, as in another container or for lack of memory. "": open() works again.
  void open_nothing(std::string why, GpuErrc how = GpuErrc::bad_handle) {
    why_not_open_ = std::move(why);
    how_not_open_ = how;
  }
  // Gives this GPU peer access to the GPU with this UUID.
  void neighbour(std::string uuid) { neighbours_.push_back(std::move(uuid)); }
  // Number of other processes' allocations that are mapped now.
  [[nodiscard]] std::size_t opened() const;
  // Returns the accessible memory behind device addresses, for tests.
  [[nodiscard]] std::span<std::byte> behind(std::span<std::byte const> memory) const;
  [[nodiscard]] std::uint64_t allocations() const { return allocations_; }

  GpuInfo const& info() const override { return info_; }
  Result<std::uint64_t> free_bytes() override;
  Result<std::byte*> allocate(std::uint64_t bytes) override;
  void free(std::byte* memory) override;
  Result<std::byte*> allocate_pinned(std::uint64_t bytes) override;
  void free_pinned(std::byte* memory) override;
  Result<std::unique_ptr<GpuSession>> session() override;
  std::unique_lock<std::shared_timed_mutex> hold_still() override {
    return std::unique_lock(still_, std::chrono::milliseconds(100));
  }
  Result<IpcHandle> share(std::byte* memory) override;
  Result<std::byte*> open(IpcHandle const& handle, std::uint64_t bytes) override;
  void close(std::byte* opened) override;
  Status reach(std::string_view uuid) override;
  Status see(Gpu& other) override;

 private:
  friend class DoubleSession;
  // Two mappings of the same memory: the addresses that are given out, and the accessible ones.
  struct Window {
    std::byte* shown = nullptr;
    std::byte* real = nullptr;
    std::uint64_t bytes = 0;
  };
  [[nodiscard]] Window map(int file, std::uint64_t offset, std::uint64_t bytes) const;
  static void unmap(Window const& window);
  static std::uint64_t& uses(Window const& places, std::uint64_t offset);
  [[nodiscard]] Result<std::shared_lock<std::shared_timed_mutex>> unheld();
  [[nodiscard]] bool is_lost() const;
  [[nodiscard]] Status work();  // counts one operation, which may fail
  [[nodiscard]] std::byte* real(std::byte const* shown, std::uint64_t bytes) const;

  GpuInfo info_;
  int file_ = -1;
  Window own_;
  Window uses_;  // numbers of allocations, by page of their offset
  bool shares_ = true;
  std::string why_not_open_;
  GpuErrc how_not_open_ = GpuErrc::bad_handle;
  std::vector<std::string> neighbours_;
  std::vector<GpuDouble const*> seen_;
  std::shared_timed_mutex still_;
  std::chrono::milliseconds patience_with_still_{2000};
  mutable std::mutex mutex_;
  std::map<std::uint64_t, std::uint64_t> used_;  // offset to size
  std::map<std::byte const*, Window> opened_;    // by the address that is given out
  std::int64_t until_failure_ = -1;
  GpuErrc failure_ = GpuErrc::failed;
  bool lost_ = false;
  std::atomic<bool> const* lost_when_ = nullptr;
  std::atomic<std::uint64_t> allocations_{0};
  std::atomic<std::uint64_t> operations_{0};
  std::atomic<bool> hangs_{false};
  std::uint64_t const seed_;
};

}  // namespace chorus::devices::testing
