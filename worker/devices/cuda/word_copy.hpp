// Copies eight bytes between GPU memory and host memory, for a thread that must not wait long for the device.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "worker/devices/cuda/gpu.hpp"
#include "worker/devices/cuda/pinned.hpp"

namespace chorus::devices {

class GpuUnit;

// The copy is queued at construction, on a session of its own. The destructor waits until the device has done it. The
// unit outlives it. One thread at a time.
class WordCopy {
 public:
  // The longest time that a thread waits for the copy.
  static constexpr std::chrono::milliseconds patience{100};

  // Errors: GpuErrc.
  [[nodiscard]] static Result<std::unique_ptr<WordCopy>> upload(GpuUnit& unit, std::byte* to, std::uint64_t word);
  [[nodiscard]] static Result<std::unique_ptr<WordCopy>> download(GpuUnit& unit, std::byte const* from);
  ~WordCopy();
  WordCopy(WordCopy const&) = delete;
  WordCopy& operator=(WordCopy const&) = delete;

  // Waits for the copy until `patience` after its beginning. False: not yet. Errors: GpuErrc.
  [[nodiscard]] Result<bool> is_done();
  [[nodiscard]] bool rests() { return is_done_ || session_->rests(); }  // the destructor would not wait
  [[nodiscard]] std::uint64_t word() const;                             // after is_done() has returned true

 private:
  WordCopy(GpuUnit& unit, PinnedSlot slot, std::unique_ptr<GpuSession> session);
  [[nodiscard]] static Result<std::unique_ptr<WordCopy>> prepare(GpuUnit& unit);
  [[nodiscard]] Status queue(Lane lane, std::byte* to, std::byte const* from);

  GpuUnit& unit_;
  std::chrono::steady_clock::time_point const until_;
  PinnedSlot slot_;
  Mark mark_;
  bool is_done_ = false;
  std::unique_ptr<GpuSession> session_;  // destroyed first: waits for work that uses the slot
};

}  // namespace chorus::devices
