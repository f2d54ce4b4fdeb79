// Orders of a benchmark to its rank processes, as words on a line.
#pragma once

#include <cstdint>
#include <optional>
#include <sstream>
#include <string>

#include "collectives/core/dtype.hpp"
#include "collectives/core/result.hpp"
#include "collectives/core/wire_format.hpp"
#include "collectives/plan/spec.hpp"

namespace chorus::bench {

// A task, independent of the algorithm.
struct Task {
  Op op = Op::all_reduce;
  Dtype dtype = Dtype::f32;
  std::uint64_t elements = 0;  // of the whole vector, the concatenation of the blocks if there are blocks
  plan::Rank root = 0;         // of rooted operations
  std::optional<WireFormat> compression;
  friend bool operator==(Task const&, Task const&) = default;

  // The largest vector that any rank contributes or gets, as nccl-tests counts.
  [[nodiscard]] std::uint64_t bytes() const { return elements * element_bytes(dtype); }
};

// The task of this size; with blocks, rounded up to whole elements per rank. A barrier has one byte per rank. `bytes`
// is a multiple of the element size.
[[nodiscard]] Task make_task(Op op, Dtype dtype, std::uint64_t bytes, std::uint32_t ranks, plan::Rank root);

// "all_gather f32 1024 0 -", the last word being the compression: read with read_task, from a stream that may hold more
// words.
[[nodiscard]] std::string to_words(Task const& task);
[[nodiscard]] Result<Task> read_task(std::istringstream& words);

// "torus_2d 0 2 2,4": algorithm, root, arity, and the shape, "-" if there is none. Operation and ranks are omitted.
[[nodiscard]] std::string to_words(plan::Spec const& spec);
[[nodiscard]] Result<plan::Spec> read_spec(std::istringstream& words, Op op, std::uint32_t ranks);

}  // namespace chorus::bench
