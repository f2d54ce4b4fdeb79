// How the coded chunks of a run are encoded: see plan::Program::coded_from.
//
// A chunk is encoded by itself, from its front, in units of as many elements as a block has. So its codes can follow
// its elements, and its elements its codes, before either is complete.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "collectives/core/dtype.hpp"
#include "collectives/plan/program.hpp"
#include "worker/devices/codec.hpp"

namespace chorus::engine {

// A value. Any thread.
class Coding {
 public:
  // has_format(dtype, format) holds, and the dtype is f32 or f64.
  Coding(WireFormat format, Dtype dtype) : codec_(format, dtype), element_bytes_(element_bytes(dtype)) {}

  [[nodiscard]] devices::Codec const& codec() const { return codec_; }
  // Size of the codes of so many elements of one chunk, padded with zeros to whole elements.
  [[nodiscard]] std::uint64_t codes_bytes(std::uint64_t elements) const {
    return (codec_.bytes(elements) + element_bytes_ - 1) / element_bytes_ * element_bytes_;
  }
  // Sizes of a unit: its elements and its codes.
  [[nodiscard]] std::uint64_t unit_bytes() const { return block_codes * element_bytes_; }
  [[nodiscard]] std::uint64_t unit_codes_bytes() const { return codec_.bytes(block_codes); }

 private:
  devices::Codec codec_;
  std::uint64_t element_bytes_;
};

// In which bytes the progress of an instruction is counted.
enum class Counted : std::uint8_t {
  in_elements,
  in_codes,  // messages of codes
  in_units,  // encodes or decodes: in elements, and whole units except at the end
};

[[nodiscard]] inline std::vector<Counted> how_counted(plan::Program const& program) {
  std::vector<Counted> counted;
  counted.reserve(program.instructions.size());
  for (auto const& i : program.instructions) {
    bool const is_coded = (i.reads_src() && program.is_coded(i.src, i.src_chunk)) ||
                          (i.writes_dst() && program.is_coded(i.dst, i.dst_chunk));
    counted.push_back(!is_coded ? Counted::in_elements : i.is_local() ? Counted::in_units : Counted::in_codes);
  }
  return counted;
}

}  // namespace chorus::engine
