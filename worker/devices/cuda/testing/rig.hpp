// A GpuUnit on a GPU that the test owns, random operands, and the comparison of what it computes.
#pragma once

#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "worker/devices/cuda/gpus.hpp"

namespace chorus::devices::testing {

using Bytes = std::vector<std::byte>;
inline constexpr auto poison = std::byte{0x5a};  // of memory that a computation must not touch

// Random bits, including subnormal numbers, infinities and NaNs.
inline Bytes random_bytes(std::size_t size, std::mt19937_64& random) {
  Bytes bytes(size);
  for (auto& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

template <class Bits>
bool same_or_nan(std::byte const* a, std::byte const* b, Bits infinity) {
  Bits x = 0, y = 0;
  std::memcpy(&x, a, sizeof x);
  std::memcpy(&y, b, sizeof y);
  auto const is_nan = [infinity](Bits bits) {
    return static_cast<Bits>(bits & static_cast<Bits>(static_cast<Bits>(~Bits{0}) >> 1)) > infinity;
  };
  return x == y || (is_nan(x) && is_nan(y));
}

// Compares bits, except the payloads of NaNs, which depend on the processor.
inline bool same(Dtype dtype, std::byte const* a, std::byte const* b) {
  if (dtype == Dtype::f64) return same_or_nan<std::uint64_t>(a, b, 0x7ff0000000000000u);
  if (dtype == Dtype::f32) return same_or_nan<std::uint32_t>(a, b, 0x7f800000u);
  if (dtype == Dtype::f16) return same_or_nan<std::uint16_t>(a, b, 0x7c00u);
  if (dtype == Dtype::bf16) return same_or_nan<std::uint16_t>(a, b, 0x7f80u);
  return std::memcmp(a, b, element_bytes(dtype)) == 0;
}

struct Rig {
  // Uses a GPU that it does not own.
  struct Borrowed;
  explicit Rig(Gpu& gpu);
  std::unique_ptr<GpuUnit> unit;
};

struct Rig::Borrowed final : Gpu {
  explicit Borrowed(Gpu& other) : gpu(other) {}
  GpuInfo const& info() const override { return gpu.info(); }
  Result<std::uint64_t> free_bytes() override { return gpu.free_bytes(); }
  Result<std::byte*> allocate(std::uint64_t bytes) override { return gpu.allocate(bytes); }
  void free(std::byte* memory) override { gpu.free(memory); }
  Result<std::byte*> allocate_pinned(std::uint64_t bytes) override { return gpu.allocate_pinned(bytes); }
  void free_pinned(std::byte* memory) override { gpu.free_pinned(memory); }
  Result<std::unique_ptr<GpuSession>> session() override { return gpu.session(); }
  std::unique_lock<std::shared_timed_mutex> hold_still() override { return gpu.hold_still(); }
  Result<IpcHandle> share(std::byte* memory) override { return gpu.share(memory); }
  Result<std::byte*> open(IpcHandle const& handle, std::uint64_t bytes) override { return gpu.open(handle, bytes); }
  void close(std::byte* opened) override { gpu.close(opened); }
  Status reach(std::string_view uuid) override { return gpu.reach(uuid); }
  Status see(Gpu& other) override { return gpu.see(dynamic_cast<Borrowed&>(other).gpu); }
  Gpu& gpu;
};

inline Rig::Rig(Gpu& gpu)
    : unit(std::make_unique<GpuUnit>(std::make_unique<Borrowed>(gpu), GpuLimits{.arena_bytes = 64 << 20})) {}

}  // namespace chorus::devices::testing
