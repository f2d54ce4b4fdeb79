// Program: one rank's part of a plan after all passes. The engine runs it, and the verifier proves it. Immutable once
// built; runs on any thread share it by std::shared_ptr<Program const>.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "collectives/core/result.hpp"
#include "collectives/plan/algorithm.hpp"
#include "collectives/plan/holding.hpp"
#include "collectives/plan/instruction.hpp"
#include "collectives/plan/spec.hpp"

namespace chorus::plan {

// A wait for an earlier instruction of the same rank: for the whole instruction or, if both name the same range,
// segment by segment, so that a segment does not wait for the others. The latter also holds for writes after reads: a
// receive may write segment s of a range as soon as the send before it has finished segment s.
struct Dependency {
  std::uint32_t instruction;
  bool segmentwise;
  friend bool operator==(Dependency const&, Dependency const&) = default;
};

// The messages between this rank and one peer. Both ends compute the digests from their own programs. A run uses a link
// only if the sender's numbers and digests equal the receiver's, so generators that disagree never exchange a byte.
struct Channel {
  Rank peer = 0;
  std::uint32_t sends = 0;        // number of messages to the peer
  std::uint32_t receives = 0;     // number of messages from the peer
  std::uint64_t send_digest = 0;  // of number, lane, length and (if both ends know them) chunks of every message
  std::uint64_t receive_digest = 0;
  friend bool operator==(Channel const&, Channel const&) = default;
};

inline constexpr std::uint32_t no_codes = ~std::uint32_t{0};

struct Program {
  Spec spec;
  Rank rank = 0;
  std::uint32_t chunks = 1;
  std::uint32_t scratch_chunks = 0;  // chunk k has the size of chunk k mod C
  // Scratch chunks from this one on hold codes where the run has a format (core/wire_format.hpp), otherwise elements. A
  // copy to such a chunk encodes, a copy from it decodes, and a reduction of it decodes and adds. Messages of such
  // chunks are codes, and no message is reduced as it arrives. These instructions name one chunk each.
  std::uint32_t coded_from = no_codes;
  bool rooted = false;                          // Spec::root has a special role
  bool equal_chunks = false;                    // see Algorithm
  bool adds_one_by_one = false;                 // see Summation
  ChunkRange input;                             // see memory() in holding.hpp
  ChunkRange output;                            // likewise
  std::vector<Instruction> instructions;        // in round order; an instruction depends only on earlier ones
  std::vector<std::uint32_t> round_begin;       // index of each round's first instruction, and one past the last
  std::vector<Dependency> dependencies;         // all lists, one after the other
  std::vector<std::uint32_t> dependency_begin;  // list of instruction i: [dependency_begin[i], dependency_begin[i + 1])
  std::vector<Channel> channels;                // sorted by peer

  [[nodiscard]] std::span<Dependency const> dependencies_of(std::size_t instruction) const {
    return std::span(dependencies)
        .subspan(dependency_begin[instruction], dependency_begin[instruction + 1] - dependency_begin[instruction]);
  }
  [[nodiscard]] bool is_coded(Buffer buffer, std::uint32_t chunk) const {
    return buffer == Buffer::scratch && chunk >= coded_from;
  }
  [[nodiscard]] Channel const* channel(Rank peer) const;  // null if the plan has no messages with the peer
  [[nodiscard]] std::size_t memory_bytes() const;
  friend bool operator==(Program const&, Program const&) = default;
};

// Returns true if the chunks of `instruction` from `chunk` on exist in this buffer.
[[nodiscard]] bool in_bounds(Program const& program, Buffer buffer, std::uint32_t chunk,
                             Instruction const& instruction);

// Generates the rounds of one rank and runs the passes (passes/passes.hpp). Allocates only this rank's part. Errors:
// PlanErrc.
[[nodiscard]] Result<Program> build(Algorithm const& algorithm, Spec const& spec, Rank rank);

}  // namespace chorus::plan
