// A GPU for tests, in the host's memory. What it is asked to do it does late and one thing at a time, in an order of
// its own among its queues; its memory is poisoned when it is given out, and whoever looks there without being the
// device dies of it: the addresses that it gives out are mapped without any right.
#pragma once

#include <atomic>
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

// Thread-safe, as a Gpu is.
class GpuDouble final : public Gpu {
 public:
  explicit GpuDouble(std::uint32_t index = 0, std::uint64_t memory_bytes = 256 << 20, std::uint64_t seed = 1);
  ~GpuDouble() override;

  // Of the operations that are queued from now on, the one after the next `count` fails; with GpuErrc::lost, all calls
  // from then on.
  void fail_after(std::int64_t count, GpuErrc how);
  // Lost as soon as this is true, which outlives it: for whoever cannot call it then, as the handler of a signal.
  void lost_when(std::atomic<bool> const& flag) { lost_when_ = &flag; }
  // Hangs: takes what it is asked to do, and does none of it until it goes on.
  void hang() { hangs_ = true; }
  void go_on() { hangs_ = false; }
  // What it has done of what was queued.
  [[nodiscard]] std::uint64_t operations() const { return operations_; }
  void share_nothing() { shares_ = false; }  // as where the system has no handles
  // As in another container, or for want of memory; "": opens again.
  void open_nothing(std::string why, GpuErrc how = GpuErrc::bad_handle) {
    why_not_open_ = std::move(why);
    how_not_open_ = how;
  }
  // Has peer access to this one, too.
  void neighbour(std::string uuid) { neighbours_.push_back(std::move(uuid)); }
  // Of other processes' memory that is mapped now.
  [[nodiscard]] std::size_t opened() const;
  // What the device has in its memory there, for tests that look behind the curtain.
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
  // Memory as it is given out, and as the device sees it.
  struct Window {
    std::byte* shown = nullptr;
    std::byte* real = nullptr;
    std::uint64_t bytes = 0;
  };
  [[nodiscard]] Window map(int file, std::uint64_t offset, std::uint64_t bytes) const;
  static void unmap(Window const& window);
  static std::uint64_t& uses(Window const& places, std::uint64_t offset);
  [[nodiscard]] Status work();  // counts one operation, which may fail
  [[nodiscard]] std::byte* real(std::byte const* shown, std::uint64_t bytes) const;

  GpuInfo info_;
  int file_ = -1;
  Window own_;
  Window uses_;  // what is given out, by place
  bool shares_ = true;
  std::string why_not_open_;
  GpuErrc how_not_open_ = GpuErrc::bad_handle;
  std::vector<std::string> neighbours_;
  std::vector<GpuDouble const*> seen_;
  std::shared_timed_mutex still_;
  mutable std::mutex mutex_;
  std::map<std::uint64_t, std::uint64_t> used_;  // offset to size
  std::map<std::byte const*, Window> opened_;    // by where it is shown
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
