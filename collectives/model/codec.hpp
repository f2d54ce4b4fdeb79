// Costs of collectives whose messages are all codes, beyond those of messages: see Compression.
#pragma once

#include <cstdint>

#include "collectives/core/op.hpp"
#include "collectives/core/wire_format.hpp"
#include "collectives/model/network.hpp"

namespace chorus::model {

// Returns the constants of runs whose elements are carriers of codes: gamma is the time to add codes to a sum.
[[nodiscard]] Constants of_codes(Constants constants, WireFormat format);

// Returns the seconds in which the slowest rank encodes its contribution before the run and decodes the result after
// it. `carriers` are those of the whole vector. Ranks that share too few cores take turns.
[[nodiscard]] double conversion_s(Network const& network, WireFormat format, Op op, std::uint64_t carriers);

}  // namespace chorus::model
