// The interface between code of the CUDA compiler and the rest: plain data of fixed-width numbers and pointers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "worker/devices/cuda/kernels/code.hpp"
#include "worker/devices/cuda/kernels/step.hpp"

namespace chorus::devices::cuda {

inline constexpr std::uint32_t sources_max = 64;
inline constexpr std::uint32_t destinations_max = 16;

// A pass of one kernel, like devices::ReduceArguments: destinations = ((s0 op s1) op s2) ... in memory that the device
// can access. One destination may also be a source, otherwise nothing overlaps.
struct FoldArguments {
  void const* sources[sources_max];
  void* destinations[destinations_max];
  std::uint64_t elements;
  std::uint32_t source_count;       // at least 1; 1 copies
  std::uint32_t destination_count;  // at least 1
  std::uint32_t divisor;            // of avg
  float scale;                      // of avg of floats: they are divided by divisor / scale
  float weights[sources_max];       // of avg of floats: factor of each source, if is_weighted
  std::uint32_t contributions;      // of avg of f32 and f64, with `single`: see Reducer::How
  std::uint32_t single;
  bool is_weighted;
  bool wide_source;   // f16, bf16: the first source is f32
  bool wide_results;  // f16, bf16: the destinations are f32
  bool is_plain;      // set by launch_fold: nothing is wide, and all addresses are multiples of 16 bytes
};

// Queues the pass on a stream of the current device. `op` and `dtype` are the numbers of ReduceOp and Dtype. Returns a
// cudaError_t; -1 if there is no such reduction.
int launch_fold(std::uint8_t op, std::uint8_t dtype, FoldArguments const& arguments, void* stream);

// Queues a step on at most `blocks_max` blocks. Returns a cudaError_t; -1 if there is no step for the dtype.
int launch_step(StepOrder const& order, unsigned blocks_max, void* stream);

// Queues a conversion on at most `blocks_max` blocks. Returns a cudaError_t; -1 if the dtype has no such codes.
int launch_code(CodeOrder const& order, unsigned blocks_max, void* stream);

}  // namespace chorus::devices::cuda
