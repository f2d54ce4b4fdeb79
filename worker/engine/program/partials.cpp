#include "worker/engine/program/partials.hpp"

#include <algorithm>

#include "collectives/core/assert.hpp"
#include "collectives/plan/partial_sums.hpp"

namespace chorus::engine {
namespace {

// Alignment of a ring: suits loads of a GPU and of the widest vector registers.
constexpr std::uint64_t alignment = 256;

std::uint64_t rounded_up(std::uint64_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

}  // namespace

Partials::Partials(plan::Program const& program, std::span<std::uint64_t const> total_bytes, Dtype dtype,
                   PartialsLimit limit)
    : element_bytes_(element_bytes(dtype)), wide_bytes_(wide_bytes(dtype)) {
  auto const sums = plan::partial_sums(program);
  if (sums.empty()) return;
  auto const share = limit.memory_bytes / sums.size() / alignment * alignment / wide_bytes_ * element_bytes_;
  auto const longest =
      std::max<std::uint64_t>({share, limit.shortest_bytes, element_bytes_}) / element_bytes_ * element_bytes_;
  ring_of_.assign(program.instructions.size(), no_ring);
  for (auto const& sum : sums) {
    auto const first = sum.front(), last = sum.back();
    CHORUS_ASSERT(!program.instructions[first].has_wide_operand() && !program.instructions[last].has_wide_result(),
                  "a partial sum begins and ends on its rank");
    auto const total = total_bytes[first];
    if (total == 0) continue;
    Ring const ring{rounded_up(memory_bytes_), std::min(total, longest)};
    if (total > ring.bytes) flow_limits_.push_back({first, last, ring.bytes});
    for (auto const i : sum) ring_of_[i] = static_cast<std::uint32_t>(rings_.size());
    memory_bytes_ = ring.offset + ring.bytes / element_bytes_ * wide_bytes_;
    rings_.push_back(ring);
  }
}

}  // namespace chorus::engine
