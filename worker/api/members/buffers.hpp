// Which buffers an operation takes from a rank, and how large they are.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "collectives/core/op.hpp"
#include "collectives/plan/spec.hpp"
#include "worker/api/joined_group.hpp"

namespace chorus::embedded {

// The place of the caller.
struct Place {
  std::uint32_t rank = 0;
  std::uint32_t size = 1;
};

// A call as the engine takes it: what this rank does not have is empty, and in place both are the same memory.
struct Buffers {
  std::span<std::byte const> input;
  std::span<std::byte> output;
  Dtype dtype = Dtype::f32;
  std::uint64_t elements = 0;  // Group::run
  // What `auto` goes by: the same on all ranks, which of uneven all_to_all only a constant is.
  std::uint64_t chosen_by_bytes = 0;
  bool in_place = false;
};

// Checked: roots, counts and sizes fit the operation and each other. In place `output` is the tensor, and `input` is
// not used. What a rank passes and the operation does not take from it is ignored, as the output of reduce but on the
// root. Errors: WorkerErrc::bad_argument, naming what the rank has to pass.
[[nodiscard]] Result<Buffers> to_buffers(Op op, Place place, ConstTensorView input, TensorView output, bool in_place,
                                         CollectiveOptions const& options);

// The same for the calls of one member: what was found out for a call is taken for the next one of the same shape,
// since to find it out takes as long as a quarter of a small call over shared memory.
class CheckedBuffers {
 public:
  explicit CheckedBuffers(Place place) : place_(place) {}

  [[nodiscard]] Result<Buffers> of(Op op, ConstTensorView input, TensorView output, bool in_place,
                                   CollectiveOptions const& options);

 private:
  // All that to_buffers() looks at, but for counts and where the buffers lie.
  struct Shape {
    Op op;
    ReduceOp reduce;
    std::uint32_t root;
    bool in_place;
    Dtype input_dtype, output_dtype;
    std::uint64_t input_bytes, output_bytes;
    friend bool operator==(Shape const&, Shape const&) = default;
  };

  Place const place_;
  std::optional<Shape> shape_;  // of the last call
  Buffers buffers_;             // and what it came to
};

// Whether no output of a list overlaps another tensor of it. Errors: WorkerErrc::bad_argument, naming both tensors.
[[nodiscard]] Status check_apart(std::span<ConstTensorView const> inputs, std::span<TensorView const> outputs);

// Whether there is a reduction of the dtype, for operations that reduce. Errors: WorkerErrc::bad_argument.
[[nodiscard]] Status check_reduction(Op op, ReduceOp reduce, Dtype dtype);

}  // namespace chorus::embedded
