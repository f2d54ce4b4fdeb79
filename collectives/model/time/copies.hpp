// Delay of the first piece of a message between processes of one host.
#pragma once

#include "collectives/model/network.hpp"

namespace chorus::model {

// Between processes of a host the system copies a message twice: into the kernel and out of it. In a long message both
// copies overlap, and beta is their rate; of the first piece the second copy begins when the first has ended. Returns
// the seconds by which this piece arrives later than by alpha and beta; 0 between hosts, and if cores are not shared.
[[nodiscard]] double copies_s(Network const& network, plan::Rank from, plan::Rank to, std::uint64_t bytes);

}  // namespace chorus::model
