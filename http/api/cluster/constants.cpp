#include "http/api/cluster/constants.hpp"

#include "http/json/codec.hpp"

namespace chorus::api {

BOOST_DESCRIBE_STRUCT(LinkConstants, (), (alpha_s, beta_s_per_byte))
BOOST_DESCRIBE_STRUCT(LevelConstants, (), (host, rack, zone, region, world))
BOOST_DESCRIBE_STRUCT(UplinkConstants, (), (host, rack, zone, region))
BOOST_DESCRIBE_STRUCT(FormatConstants, (), (encode_s_per_byte, decode_s_per_byte, add_s_per_byte))
BOOST_DESCRIBE_STRUCT(CodecConstants, (), (bf16, f16, int8, fp8_e4m3))
BOOST_DESCRIBE_STRUCT(ModelConstants, (),
                      (level, gamma_s_per_byte, cache_bytes, cached_gamma_s_per_byte, codec, segment_bytes,
                       uplink_s_per_byte, host_cores, message_cpu_s, byte_cpu_s, wake_s))

constexpr auto required(LinkConstants const*) { return std::array<std::string_view, 2>{"alpha_s", "beta_s_per_byte"}; }
constexpr auto required(FormatConstants const*) {
  return std::array<std::string_view, 3>{"encode_s_per_byte", "decode_s_per_byte", "add_s_per_byte"};
}

}  // namespace chorus::api

CHORUS_HTTP_MESSAGE(chorus::api::ModelConstants)
