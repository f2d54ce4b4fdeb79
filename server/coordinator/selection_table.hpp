// Which algorithm for which size, decided once per epoch and shipped to the members as data.
#pragma once

#include <span>
#include <vector>

#include "collectives/model/select.hpp"
#include "http/api/groups.hpp"

namespace chorus::coordinator {

// Asks the model for every operation at 4, 16, .. 4^16 bytes of the whole vector (4 GiB; in
// other operations than all_reduce at every second of these sizes) and merges neighbours that agree; the last line of
// an operation has no upper end. Errors: PlanErrc.
[[nodiscard]] Result<std::vector<api::Selection>> selection_table(model::Network const& network);

// One line of the table as the model sees it: for tests of the merging.
struct SizedChoice {
  std::uint64_t bytes = 0;
  model::Choice choice;
};
[[nodiscard]] std::vector<api::Selection> merge_choices(std::span<SizedChoice const> by_size);

}  // namespace chorus::coordinator
