// Several doubles as the GPUs of one process, with memory on them.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "worker/devices/cuda/testing/gpu_double.hpp"
#include "worker/devices/cuda/together.hpp"

namespace chorus::devices::testing {

using Bytes = std::vector<std::byte>;

// Each GPU has memory for some tensors.
class Team {
 public:
  explicit Team(std::size_t count, bool has_peer_access = true, GpuLimits limits = {.arena_bytes = 32 << 20}) {
    for (std::uint32_t i = 0; i < count; ++i) {
      auto gpu = std::make_unique<GpuDouble>(i, 64 << 20, i + 1);
      gpus.push_back(gpu.get());
      owned_.push_back(std::make_unique<GpuUnit>(std::move(gpu), limits));
      units.push_back(owned_.back().get());
    }
    for (auto* const one : gpus)
      for (auto const* const other : gpus)
        if (has_peer_access && one != other) one->neighbour(other->info().uuid);
  }

  // Allocates memory with these bytes on the n-th GPU.
  Placed put(std::size_t n, Bytes const& bytes) {
    auto const place = make_room(n, bytes.size());
    std::ranges::copy(bytes, gpus[n]->behind({place.data, bytes.size()}).begin());
    return place;
  }
  Placed make_room(std::size_t n, std::size_t bytes) {
    blocks_.push_back(units[n]->acquire(bytes).value());
    std::ranges::fill(gpus[n]->behind(blocks_.back()->bytes()), std::byte{0x5a});
    return {units[n], blocks_.back()->bytes().data()};
  }
  [[nodiscard]] Bytes get(Placed place, std::size_t bytes) const {
    auto const n = static_cast<std::size_t>(std::ranges::find(units, place.unit) - units.begin());
    auto const there = gpus[n]->behind({place.data, bytes});
    return {there.begin(), there.end()};
  }
  [[nodiscard]] std::uint64_t peer_bytes() const {
    std::uint64_t sum = 0;
    for (auto* const unit : units) sum += unit->totals().use.peer_bytes;
    return sum;
  }

  std::vector<GpuDouble*> gpus;
  std::vector<GpuUnit*> units;

 private:
  std::vector<std::unique_ptr<GpuUnit>> owned_;
  std::vector<std::shared_ptr<GpuMemory>> blocks_;
};

inline Bytes random_floats(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<float> values(count);
  for (auto& value : values) value = static_cast<float>(static_cast<std::int64_t>(random())) * 1e-18F;
  Bytes bytes(count * sizeof(float));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

}  // namespace chorus::devices::testing
