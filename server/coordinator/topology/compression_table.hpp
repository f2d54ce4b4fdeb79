// The table for members' calls with compression "auto", made once per epoch and sent to the members as data.
#pragma once

#include <span>
#include <vector>

#include "collectives/model/network.hpp"
#include "http/api/collectives/groups.hpp"

namespace chorus::coordinator {

// Asks the model for every operation that has codes, at 4 KiB, 64 KiB, .. 4 GiB of the whole vector: which formats are
// faster than the elements, each by the algorithm that members' calls take for it. `selection`: the table of the
// algorithms for elements, by positions of the network. Neighbours that agree are merged; the last line has no upper
// end. There are lines for tensors of 2 and of 4 bytes per element, and for codes between the groups of each level that
// has several groups of neighbouring ranks. Empty if all ranks are on one host.
[[nodiscard]] std::vector<api::CompressionSelection> compression_table(model::Network const& network,
                                                                       std::span<api::Selection const> selection);

}  // namespace chorus::coordinator
