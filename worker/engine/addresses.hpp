// Where the chunks of a program lie in memory.
#pragma once

#include <cstdint>
#include <vector>

#include "collectives/plan/program.hpp"
#include "collectives/plan/sizes.hpp"

namespace chorus::engine {

// A value for one program and the sizes of one call. Offsets are bytes from where a buffer's memory begins. Scratch
// chunk k has the size of chunk k mod C of the input's layout.
class Addresses {
 public:
  // check(program, sizes) is ok. The program outlives it.
  Addresses(plan::Program const& program, plan::Sizes const& sizes, std::size_t element_bytes)
      : program_(program),
        layouts_(plan::layouts(program, sizes)),
        element_bytes_(element_bytes),
        input_bytes_(plan::input_elements(program, layouts_) * element_bytes),
        output_bytes_(plan::output_elements(program, layouts_) * element_bytes) {}

  // One past the last chunk is fine.
  [[nodiscard]] std::uint64_t begin_of(plan::Buffer buffer, std::uint32_t chunk) const;

  [[nodiscard]] std::uint64_t input_bytes() const { return input_bytes_; }
  [[nodiscard]] std::uint64_t output_bytes() const { return output_bytes_; }
  [[nodiscard]] std::uint64_t scratch_bytes() const { return begin_of(plan::Buffer::scratch, program_.scratch_chunks); }

  // Per instruction, what it moves.
  [[nodiscard]] std::vector<std::uint64_t> total_bytes() const;

 private:
  plan::Program const& program_;
  plan::Layouts layouts_;
  std::size_t element_bytes_;
  std::uint64_t input_bytes_, output_bytes_;
};

}  // namespace chorus::engine
