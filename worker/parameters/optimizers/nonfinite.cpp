#include "worker/parameters/optimizers/nonfinite.hpp"

#include "worker/parameters/optimizers/kernels.hpp"

namespace chorus::parameters {

std::uint64_t count_nonfinite(Dtype dtype, std::span<std::byte const> bytes) {
  if (static_cast<std::size_t>(dtype) >= float_dtypes_count) return 0;
  return best_kernels().count_nonfinite[static_cast<std::size_t>(dtype)](bytes.data(),
                                                                         bytes.size() / element_bytes(dtype));
}

std::uint64_t zero_nonfinite(Dtype dtype, std::span<std::byte> bytes) {
  if (static_cast<std::size_t>(dtype) >= float_dtypes_count) return 0;
  return best_kernels().zero_nonfinite[static_cast<std::size_t>(dtype)](bytes.data(),
                                                                        bytes.size() / element_bytes(dtype));
}

}  // namespace chorus::parameters
