// Maps the ranks of a group to the ranks of a run, and makes the run's order for each member.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "collectives/model/choice/select.hpp"
#include "http/api/collectives/collectives.hpp"
#include "http/api/collectives/groups.hpp"
#include "http/api/collectives/runs.hpp"
#include "http/json/problem.hpp"
#include "server/coordinator/admission/admission.hpp"

namespace chorus::coordinator {

// True if the tensors that a rank has on these devices ("cuda:0,cuda:1") may be added in any order: they lie on several
// GPUs, and the request does not fix the order.
[[nodiscard]] bool may_add_in_any_order(api::CollectiveRequest const& request, std::string const& devices);

// The ranks of a group follow localities, and change with them. A reproducible run reduces in the order of the workers'
// names instead. The exception is reduce_scatter, where a rank is also the number of a block, and is kept.
class RunRanks {
 public:
  RunRanks(api::Group const& group, model::Wish const& wish);

  // Returns the order for the member with this rank of the group; `timeout_ms` counts from now.
  [[nodiscard]] api::RunRequest request(std::uint32_t rank, api::Group const& group, api::Collective const& collective,
                                        Admitted const& admitted, std::string token, std::uint64_t timeout_ms) const;

  // Replaces the ranks of the run in a worker's problem by those of the group, which users know.
  [[nodiscard]] http::Problem in_group_ranks(http::Problem problem) const;

 private:
  bool by_worker_ = false;
  std::vector<std::uint32_t> member_of_, run_rank_;  // by rank of the run, and by rank of the group
};

}  // namespace chorus::coordinator
