// A collective that sends codes of its elements. docs/reference/compressed_collectives.md has the formats and bounds.
//
// Where all messages are codes, the run moves and adds codes, in memory of its own: the caller encodes the input before
// the run, and decodes the output after it, also what the rank itself has contributed. A contribution is encoded once,
// and a sum once, at the rank that adds all of it in f32; so all ranks decode the same codes.
//
// Where only messages between groups are codes, the run itself encodes and decodes (RunSpec::codes), in the order of
// its plan and segment by segment.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "collectives/core/compression.hpp"
#include "collectives/core/op.hpp"
#include "collectives/core/reduce_op.hpp"
#include "collectives/core/result.hpp"
#include "collectives/plan/algorithm.hpp"
#include "collectives/plan/program.hpp"
#include "collectives/plan/sizes/sizes.hpp"
#include "worker/devices/codec.hpp"
#include "worker/devices/cuda/kernels/code.hpp"

namespace chorus::devices {
class GpuUnit;
}

namespace chorus::engine {

// Errors: PlanErrc::unsupported_operation, naming what would be possible: for other operations than all_reduce, reduce,
// reduce_scatter, all_gather and broadcast; for reductions other than sum and avg, or by an algorithm that adds an
// element at several places; for a dtype that has no such format. Codes between groups: for
// other dtypes than f32 and f64; any algorithm will do, since an algorithm without codes sends elements.
[[nodiscard]] Status check_compression(Compression const& compression, ReduceOp reduce, Dtype dtype,
                                       plan::Algorithm const& algorithm, plan::Spec const& spec);

// Returns RunSpec::codes: the format, if only messages between groups are codes, and the program has such messages.
[[nodiscard]] std::optional<WireFormat> codes_between(std::optional<Compression> const& compression,
                                                      plan::Program const& program);

// Error feedback of one call: what earlier calls have not sent of this rank's contribution, and what this one does not
// send. See devices::Codec::encode. With an empty `lost` there is none.
struct Feedback {
  std::span<float const> residual;
  std::span<float> lost;
};

// Encodes before a run what all messages of the run are made of. A value. Any thread.
class Compressed {
 public:
  // check_compression() is ok. `sizes`: of the tensors.
  Compressed(WireFormat format, Dtype dtype, plan::Spec const& spec, plan::Sizes const& sizes);

  // Dtype and sizes of the run.
  [[nodiscard]] Dtype dtype() const { return codec_.carrier(); }
  [[nodiscard]] plan::Sizes const& sizes() const { return sizes_; }
  // Size of the codes of a buffer: of a whole vector, or of one rank's block.
  [[nodiscard]] std::uint64_t bytes(std::uint64_t buffer_bytes) const;

  // The elements lie in memory of `gpu`, or of the host if null; codes and residuals always in that of the host. The
  // GPU converts, except with feedback. Errors: GpuErrc.
  [[nodiscard]] Status encode(std::span<std::byte> codes, std::span<std::byte const> elements, devices::GpuUnit* gpu,
                              Feedback feedback = {}) const;
  [[nodiscard]] Status decode(std::span<std::byte> elements, std::span<std::byte const> codes,
                              devices::GpuUnit* gpu) const;

 private:
  // Calls use(bytes before, bytes, codes before, codes) for each part of a buffer that is encoded by itself.
  template <class Use>
  void for_each_part(std::uint64_t buffer_bytes, Use use) const;
  [[nodiscard]] Status encode_there(std::span<std::byte> codes, std::span<std::byte const> elements,
                                    devices::GpuUnit& gpu) const;
  // Conversions of all parts in memory of a GPU.
  [[nodiscard]] std::vector<devices::CodeOrder> orders(bool decodes, std::byte* to, std::byte const* from,
                                                       std::uint64_t buffer_bytes) const;
  [[nodiscard]] bool is_whole(std::uint64_t buffer_bytes) const { return buffer_bytes == whole_bytes_; }

  WireFormat format_;
  Dtype dtype_;  // of the tensors
  devices::Codec codec_;
  std::size_t element_bytes_;
  std::vector<std::uint64_t> blocks_;  // elements per rank; empty for operations without blocks
  std::uint64_t whole_bytes_ = 0;      // of all blocks
  plan::Sizes sizes_;
};

}  // namespace chorus::engine
