// A conversion of the double: by the CPU's codec.
#pragma once

#include <functional>

#include "worker/devices/cuda/kernels/code.hpp"

namespace chorus::devices::testing {

// real(address, bytes) returns the accessible memory behind an address of the order.
void convert(CodeOrder const& order,
             std::function<std::byte*(std::byte const* shown, std::uint64_t bytes)> const& real);

}  // namespace chorus::devices::testing
