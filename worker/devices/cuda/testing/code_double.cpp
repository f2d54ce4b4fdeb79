#include "worker/devices/cuda/testing/code_double.hpp"

#include <span>

#include "worker/devices/codec.hpp"

namespace chorus::devices::testing {

void convert(CodeOrder const& order,
             std::function<std::byte*(std::byte const* shown, std::uint64_t bytes)> const& real) {
  Codec const codec(order.format, order.dtype);
  auto const elements = order.elements * element_bytes(order.dtype), codes = codec.bytes(order.elements);
  std::span const to(real(order.to, order.decodes ? elements : codes), order.decodes ? elements : codes);
  std::span<std::byte const> const from(real(order.from, order.decodes ? codes : elements),
                                        order.decodes ? codes : elements);
  if (order.decodes)
    codec.decode(to, from);
  else
    codec.encode(to, from);
}

}  // namespace chorus::devices::testing
