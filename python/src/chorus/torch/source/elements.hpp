// Dtypes and reductions of PyTorch as the library has them.
#pragma once

#include <ATen/ATen.h>
#include <chorus/chorus.h>
#include <torch/version.h>

#include <cstdint>
#include <torch/csrc/distributed/c10d/Types.hpp>

namespace chorus::process_group {

// One element of a tensor is `count` elements of the library.
struct Element {
  chorus_dtype_t dtype;
  std::int64_t count;
  bool reduces;  // false: only moves, as bytes
};

inline Element element_of(at::ScalarType type) {
  switch (type) {
    case at::kDouble:
      return {CHORUS_F64, 1, true};
    case at::kFloat:
      return {CHORUS_F32, 1, true};
    case at::kHalf:
      return {CHORUS_F16, 1, true};
    case at::kBFloat16:
      return {CHORUS_BF16, 1, true};
    case at::kLong:
      return {CHORUS_I64, 1, true};
    case at::kInt:
      return {CHORUS_I32, 1, true};
    case at::kShort:
      return {CHORUS_I16, 1, true};
    case at::kChar:
      return {CHORUS_I8, 1, true};
    case at::kByte:
    case at::kBool:
      return {CHORUS_U8, 1, true};
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 3)
    case at::kUInt16:
      return {CHORUS_U16, 1, true};
    case at::kUInt32:
      return {CHORUS_U32, 1, true};
    case at::kUInt64:
      return {CHORUS_U64, 1, true};
#endif
    case at::kComplexHalf:
      return {CHORUS_F16, 2, true};
    case at::kComplexFloat:
      return {CHORUS_F32, 2, true};
    case at::kComplexDouble:
      return {CHORUS_F64, 2, true};
    default:
      return {CHORUS_U8, static_cast<std::int64_t>(c10::elementSize(type)), false};
  }
}

using Reduction = c10d::ReduceOp::RedOpType;

inline char const* name_of(Reduction reduction) {
  switch (reduction) {
    case Reduction::SUM:
      return "SUM";
    case Reduction::AVG:
      return "AVG";
    case Reduction::PRODUCT:
      return "PRODUCT";
    case Reduction::MIN:
      return "MIN";
    case Reduction::MAX:
      return "MAX";
    case Reduction::BAND:
      return "BAND";
    case Reduction::BOR:
      return "BOR";
    case Reduction::BXOR:
      return "BXOR";
    case Reduction::PREMUL_SUM:
      return "PREMUL_SUM";
    default:
      return "unknown";
  }
}

// Of booleans, which are bytes of 0 or 1: a sum is "or", a product is "and".
inline chorus_reduce_t reduction_of_booleans(Reduction reduction) {
  switch (reduction) {
    case Reduction::SUM:
    case Reduction::MAX:
    case Reduction::BOR:
      return CHORUS_BOR;
    case Reduction::PRODUCT:
    case Reduction::MIN:
    case Reduction::BAND:
      return CHORUS_BAND;
    case Reduction::BXOR:
      return CHORUS_BXOR;
    default:
      TORCH_CHECK_VALUE(false, "chorus: ReduceOp.", name_of(reduction), " of torch.bool is not supported");
  }
}

// Throws ValueError where tensors of that type are not reduced so.
inline chorus_reduce_t reduction_of(Reduction reduction, at::ScalarType type) {
  if (type == at::kBool) return reduction_of_booleans(reduction);
  bool const sums = reduction == Reduction::SUM || reduction == Reduction::AVG || reduction == Reduction::PREMUL_SUM;
  bool const of_bits = reduction == Reduction::BAND || reduction == Reduction::BOR || reduction == Reduction::BXOR;
  TORCH_CHECK_VALUE(
      element_of(type).reduces && (sums || !at::isComplexType(type)) && !(of_bits && at::isFloatingType(type)),
      "chorus: ReduceOp.", name_of(reduction), " of ", type, " is not supported");
  switch (reduction) {
    case Reduction::SUM:
    case Reduction::PREMUL_SUM:
      return CHORUS_SUM;
    case Reduction::AVG:
      return CHORUS_AVG;
    case Reduction::PRODUCT:
      return CHORUS_PROD;
    case Reduction::MIN:
      return CHORUS_MIN;
    case Reduction::MAX:
      return CHORUS_MAX;
    case Reduction::BAND:
      return CHORUS_BAND;
    case Reduction::BOR:
      return CHORUS_BOR;
    case Reduction::BXOR:
      return CHORUS_BXOR;
    default:
      TORCH_CHECK_VALUE(false, "chorus: ReduceOp.", name_of(reduction), " is not supported");
  }
}

// Multiplies a tensor by the factor of PREMUL_SUM, in place; does nothing for other reductions.
inline void premultiply(at::Tensor& tensor, c10d::ReduceOp const& reduction) {
  if (reduction.op_ != Reduction::PREMUL_SUM) return;
  auto const* factor = dynamic_cast<c10d::NCCLPreMulSumSupplement const*>(reduction.supplement_.get());
  TORCH_CHECK_VALUE(factor != nullptr, "chorus: ReduceOp.PREMUL_SUM has no factor");
#if TORCH_VERSION_MAJOR >= 2
  if (factor->tensor_factor.defined()) {
    tensor.mul_(factor->tensor_factor.to(tensor.device()));
    return;
  }
#else
  if (!factor->tensor_factors.empty()) {
    tensor.mul_(factor->tensor_factors.front().to(tensor.device()));
    return;
  }
#endif
  tensor.mul_(factor->double_factor);
}

}  // namespace chorus::process_group
