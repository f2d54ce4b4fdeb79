#include "collectives/model/codec.hpp"

#include <algorithm>

namespace chorus::model {
namespace {

constexpr std::uint64_t float_bytes = 4;

// Bytes of f32 that a carrier stands for.
std::uint64_t stands_for(WireFormat format) { return float_bytes * (is_block(carrier_of(format)) ? block_codes : 1); }

}  // namespace

Constants of_codes(Constants constants, WireFormat format) {
  auto const carrier_bytes = static_cast<double>(element_bytes(carrier_of(format)));
  auto const add_s = constants.codec_of(format).add_s_per_byte * static_cast<double>(stands_for(format));
  constants.gamma_s_per_byte = constants.cached_gamma_s_per_byte = add_s / carrier_bytes;
  return constants;
}

double conversion_s(Network const& network, WireFormat format, Op op, std::uint64_t carriers) {
  auto const& constants = network.constants();
  auto const& codec = constants.codec_of(format);
  auto const bytes = static_cast<double>(carriers * stands_for(format));
  auto const block_bytes = bytes / network.ranks();
  auto const encoded = op == Op::all_gather ? block_bytes : bytes;
  auto const decoded = op == Op::reduce_scatter ? block_bytes : bytes;
  auto const turns = constants.host_cores > 0 ? network.largest_group(Level::host) / constants.host_cores : 0;
  return (encoded * codec.encode_s_per_byte + decoded * codec.decode_s_per_byte) * std::max(turns, 1.0);
}

}  // namespace chorus::model
