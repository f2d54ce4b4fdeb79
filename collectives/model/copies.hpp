// The delay of first pieces between processes of one host.
#pragma once

#include "collectives/model/network.hpp"

namespace chorus::model {

// Between processes of a host a message is copied into the system and out of it again. For a long message both copies
// overlap, and beta is their rate; for the first piece the second copy begins when the first has ended. Returns how
// much later than by alpha and beta this piece arrives, in seconds; 0 between hosts, and if ranks have cores of their
// own.
[[nodiscard]] double copies_s(Network const& network, plan::Rank from, plan::Rank to, std::uint64_t bytes);

}  // namespace chorus::model
