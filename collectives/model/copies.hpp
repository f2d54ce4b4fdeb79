// What processes of one host do for each other's first bytes.
#pragma once

#include "collectives/model/network.hpp"

namespace chorus::model {

// Between processes of a host a message is copied into the system and out of it again. Of a long one both go on at
// once, and beta says how fast; of the first piece the one begins where the other has ended. By so much its arrival is
// later than alpha and beta say, in seconds; 0 between hosts, and where ranks have cores of their own.
[[nodiscard]] double copies_s(Network const& network, plan::Rank from, plan::Rank to, std::uint64_t bytes);

}  // namespace chorus::model
