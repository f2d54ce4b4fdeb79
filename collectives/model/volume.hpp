// Volume: sizes in bytes of the ranges of a plan, for a vector of a given length.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>

#include "collectives/core/wire_format.hpp"
#include "collectives/plan/algorithm.hpp"
#include "collectives/plan/program.hpp"
#include "collectives/plan/sizes/coded_segments.hpp"
#include "collectives/plan/sizes/layout.hpp"

namespace chorus::model {

// Sizes of a whole vector, which is the concatenated one in operations with blocks, as in plan::Sizes. Blocks are even.
// A barrier has one byte per rank, whatever `elements` is. Takes constant time if the vector has no blocks.
class Volume {
 public:
  // Scratch chunks that hold codes: see plan::Program::coded_from.
  struct Codes {
    std::uint32_t from = plan::no_codes;
    WireFormat format = WireFormat::bf16;
  };

  // `chunks` are those of the plan, a multiple of the ranks in operations with blocks.
  Volume(plan::Spec const& spec, std::uint32_t chunks, std::uint64_t elements, std::size_t element_bytes)
      : Volume(spec, chunks, elements, element_bytes, Codes()) {}
  Volume(plan::Spec const& spec, std::uint32_t chunks, std::uint64_t elements, std::size_t element_bytes, Codes codes);

  [[nodiscard]] std::uint64_t bytes() const { return layout_.elements() * element_bytes_; }
  [[nodiscard]] std::uint32_t chunks() const { return chunks_; }
  [[nodiscard]] std::uint64_t segment_bytes_max() const {
    return codes_.from == plan::no_codes ? std::numeric_limits<std::uint64_t>::max() : plan::coded_segment_bytes_max;
  }

  [[nodiscard]] WireFormat format() const { return codes_.format; }  // of the ranges that hold codes
  // True if the range holds codes; it is one chunk then.
  [[nodiscard]] bool is_coded(plan::Slice range) const {
    return range.buffer == plan::Buffer::scratch && range.chunk >= codes_.from;
  }

  // Returns the bytes of a range of any buffer.
  [[nodiscard]] std::uint64_t bytes(plan::Slice range) const {
    if (is_coded(range)) return bytes_of_codes(range.chunk);
    if (simple_ && range.count == 1 && range.chunk < chunks_)
      return (quotient_ + (range.chunk < remainder_ ? 1 : 0)) * element_bytes_;
    if (range.chunk < chunks_ && range.stride == 1 && range.count <= chunks_ - range.chunk)
      return (begin_of(range.chunk + range.count) - begin_of(range.chunk)) * element_bytes_;
    return bytes_of_scattered(range);
  }

 private:
  [[nodiscard]] std::uint64_t begin_of(std::uint32_t chunk) const {
    if (!simple_) return layout_.begin_of(chunk);
    return chunk * quotient_ + (chunk < remainder_ ? chunk : remainder_);
  }
  [[nodiscard]] std::uint64_t bytes_of_scattered(plan::Slice range) const;
  [[nodiscard]] std::uint64_t bytes_of_codes(std::uint32_t chunk) const;

  plan::Layout layout_;
  std::uint64_t element_bytes_;
  std::uint32_t chunks_;
  std::uint64_t quotient_ = 0;
  std::uint64_t remainder_ = 0;
  Codes codes_;
  bool simple_;  // the vector is cut into chunks directly, not into blocks first
};

// Returns the coded chunks of a plan in a run with this format, if it has one.
[[nodiscard]] inline Volume::Codes codes_of(plan::Algorithm const& algorithm, plan::Spec const& spec,
                                            std::optional<WireFormat> format) {
  if (!format || algorithm.coded_from == nullptr) return {};
  return {algorithm.coded_from(spec), *format};
}

}  // namespace chorus::model
