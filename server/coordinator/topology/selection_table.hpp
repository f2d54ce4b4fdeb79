// The table of algorithms by size, made once per epoch and sent to the members as data.
#pragma once

#include <span>
#include <vector>

#include "collectives/model/choice/select.hpp"
#include "http/api/collectives/groups.hpp"

namespace chorus::coordinator {

// Asks the model for every operation at 4, 16, .. 4^16 bytes of the whole vector (4 GiB), and merges neighbours that
// agree. Operations other than all_reduce use every second of these sizes. The last line of an operation has no upper
// end. Errors: PlanErrc.
[[nodiscard]] Result<std::vector<api::Selection>> selection_table(model::Network const& network);

// The model's choice at one size; public so that tests can check the merging.
struct SizedChoice {
  std::uint64_t bytes = 0;
  model::Choice choice;
};
[[nodiscard]] std::vector<api::Selection> merge_choices(std::span<SizedChoice const> by_size);

}  // namespace chorus::coordinator
