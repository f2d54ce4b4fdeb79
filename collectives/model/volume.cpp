#include "collectives/model/volume.hpp"

namespace chorus::model {
namespace {

plan::Layout layout_of(plan::Spec const& spec, std::uint32_t chunks, std::uint64_t elements) {
  if (spec.op == Op::barrier) elements = spec.ranks;
  return {elements, has_blocks(spec.op) ? spec.ranks : chunks, chunks};
}

}  // namespace

Volume::Volume(plan::Spec const& spec, std::uint32_t chunks, std::uint64_t elements, std::size_t element_bytes,
               Codes codes)
    : layout_(layout_of(spec, chunks, elements)),
      element_bytes_(spec.op == Op::barrier ? 1 : element_bytes),
      chunks_(chunks),
      codes_(codes),
      simple_(!has_blocks(spec.op) || chunks == spec.ranks) {
  quotient_ = layout_.elements() / chunks;
  remainder_ = layout_.elements() % chunks;
}

std::uint64_t Volume::bytes_of_codes(std::uint32_t chunk) const {
  auto const at = chunk % chunks_;
  return carriers(codes_.format, begin_of(at + 1) - begin_of(at)) * chorus::element_bytes(carrier_of(codes_.format));
}

// Chunk k of scratch has the size of chunk k mod C of the vector.
std::uint64_t Volume::bytes_of_scattered(plan::Slice range) const {
  auto elements = std::uint64_t{0};
  for (std::uint32_t i = 0; i < range.count; ++i) {
    auto const at = (range.chunk + i * range.stride) % chunks_;
    elements += begin_of(at + 1) - begin_of(at);
  }
  return elements * element_bytes_;
}

}  // namespace chorus::model
