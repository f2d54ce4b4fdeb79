// Offsets in memory of the chunks of a program.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "collectives/plan/program.hpp"
#include "collectives/plan/sizes/sizes.hpp"
#include "worker/engine/program/coding.hpp"

namespace chorus::engine {

// Maps chunks of a program to bytes, for the sizes of one call. Offsets count bytes from the begin of a buffer's
// memory. Scratch chunk k has the size of chunk k mod C of the input's layout. Immutable.
class Addresses {
 public:
  // check(program, sizes) must be ok. The program outlives the addresses. `coding`: of the program's coded chunks;
  // without one they hold elements.
  Addresses(plan::Program const& program, plan::Sizes const& sizes, std::size_t element_bytes,
            std::optional<Coding> const& coding = std::nullopt)
      : program_(program),
        layouts_(plan::layouts(program, sizes)),
        element_bytes_(element_bytes),
        input_begin_(begin_of_memory(program.input, layouts_.input)),
        output_begin_(begin_of_memory(program.output, layouts_.output)),
        input_bytes_(plan::input_elements(program, layouts_) * element_bytes),
        output_bytes_(plan::output_elements(program, layouts_) * element_bytes) {
    if (coding && program.coded_from < program.scratch_chunks) place_codes(*coding);
  }

  // Returns the longest contiguous part at the front of these chunks: at least one chunk. count >= 1.
  struct Piece {
    std::uint64_t at = 0;
    std::uint64_t bytes = 0;
    std::uint32_t chunks = 0;
  };
  [[nodiscard]] Piece piece(plan::Buffer buffer, std::uint32_t first, std::uint32_t count) const;

  [[nodiscard]] std::uint64_t input_bytes() const { return input_bytes_; }
  [[nodiscard]] std::uint64_t output_bytes() const { return output_bytes_; }
  [[nodiscard]] std::uint64_t scratch_bytes() const { return in_scratch(program_.scratch_chunks); }

  // Returns the bytes that each instruction moves, by number of the instruction: codes of messages of codes, otherwise
  // elements.
  [[nodiscard]] std::vector<std::uint64_t> total_bytes() const;

 private:
  void place_codes(Coding const& coding);
  // Returns the bytes of scratch before this chunk.
  [[nodiscard]] std::uint64_t in_scratch(std::uint32_t chunk) const {
    if (codes_at_.empty() || chunk < program_.coded_from) return before(layouts_.input, chunk);
    return codes_at_[chunk - program_.coded_from];
  }
  [[nodiscard]] bool is_coded(plan::Buffer buffer, std::uint32_t chunk) const {
    return !codes_at_.empty() && program_.is_coded(buffer, chunk);
  }
  // Returns the element of the vector at which the memory of a buffer begins.
  [[nodiscard]] static std::uint64_t begin_of_memory(plan::ChunkRange range, plan::Layout const& layout);
  // Returns the bytes of all chunks before this one. Scratch holds several vectors one after another.
  [[nodiscard]] std::uint64_t before(plan::Layout const& layout, std::uint32_t chunk) const;
  [[nodiscard]] plan::Layout const& layout_of(plan::Buffer buffer) const {
    return buffer == plan::Buffer::output ? layouts_.output : layouts_.input;
  }

  plan::Program const& program_;
  plan::Layouts layouts_;
  std::size_t element_bytes_;
  std::uint64_t input_begin_, output_begin_;  // elements
  std::uint64_t input_bytes_, output_bytes_;
  std::vector<std::uint64_t> codes_at_;  // bytes of scratch before each coded chunk, and all; empty without codes
};

}  // namespace chorus::engine
