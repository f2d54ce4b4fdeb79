#include "worker/parameters/optimizers/philox.hpp"

namespace chorus::parameters {

PhiloxCounter philox(PhiloxCounter counter, PhiloxKey key) {
  constexpr std::uint64_t multipliers[2] = {0xD2511F53, 0xCD9E8D57};
  constexpr std::uint32_t weyl[2] = {0x9E3779B9, 0xBB67AE85};
  for (int round = 0; round < 10; ++round) {
    auto const left = multipliers[0] * counter[0];
    auto const right = multipliers[1] * counter[2];
    counter = {static_cast<std::uint32_t>(right >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(right),
               static_cast<std::uint32_t>(left >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(left)};
    key[0] += weyl[0];
    key[1] += weyl[1];
  }
  return counter;
}

}  // namespace chorus::parameters
