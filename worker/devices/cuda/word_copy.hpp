// Eight bytes between a GPU's memory and the host's, for a thread that must not wait for the device.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "worker/devices/cuda/gpu.hpp"
#include "worker/devices/cuda/pinned.hpp"

namespace chorus::devices {

class GpuUnit;

// Queued from the beginning, on a session of its own; its end waits until the device is done. The unit outlives it. One
// thread at a time.
class WordCopy {
 public:
  // For so long somebody may wait for a few bytes of a device that works.
  static constexpr std::chrono::milliseconds patience{100};

  // Errors: GpuErrc.
  [[nodiscard]] static Result<std::unique_ptr<WordCopy>> upload(GpuUnit& unit, std::byte* to, std::uint64_t word);
  [[nodiscard]] static Result<std::unique_ptr<WordCopy>> download(GpuUnit& unit, std::byte const* from);
  ~WordCopy();
  WordCopy(WordCopy const&) = delete;
  WordCopy& operator=(WordCopy const&) = delete;

  // Waits, but never beyond `patience` after the beginning. False: not yet. Errors: GpuErrc.
  [[nodiscard]] Result<bool> is_done();
  [[nodiscard]] std::uint64_t word() const;  // once it is done

 private:
  WordCopy(GpuUnit& unit, PinnedSlot slot, std::unique_ptr<GpuSession> session);
  [[nodiscard]] static Result<std::unique_ptr<WordCopy>> prepare(GpuUnit& unit);
  [[nodiscard]] Status queue(Lane lane, std::byte* to, std::byte const* from);

  GpuUnit& unit_;
  std::chrono::steady_clock::time_point const until_;
  PinnedSlot slot_;
  Mark mark_;
  bool is_done_ = false;
  std::unique_ptr<GpuSession> session_;  // goes first: it waits for what it still does with the slot
};

}  // namespace chorus::devices
