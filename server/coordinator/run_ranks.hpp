// By which numbers members of a group go in a run, and what each of them is told of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "collectives/model/select.hpp"
#include "http/api/collectives.hpp"
#include "http/api/groups.hpp"
#include "http/api/runs.hpp"
#include "http/problem.hpp"
#include "server/coordinator/admission.hpp"

namespace chorus::coordinator {

// Whether what a rank has on these devices ("cuda:0,cuda:1") may be added there in any order: on several GPUs, of a
// request that leaves it open.
[[nodiscard]] bool may_add_in_any_order(api::CollectiveRequest const& request, std::string const& devices);

// A group's ranks follow localities, and change with them. What is to be reproducible is reduced in the order of the
// workers' names instead, except in reduce_scatter, where a rank is also the number of a block, and stays.
class RunRanks {
 public:
  RunRanks(api::Group const& group, model::Wish const& wish);

  // What the member with this rank of the group is told; `timeout_ms` from now.
  [[nodiscard]] api::RunRequest request(std::uint32_t rank, api::Group const& group, api::Collective const& collective,
                                        Admitted const& admitted, std::string token, std::uint64_t timeout_ms) const;

  // A problem as a worker tells it has ranks of the run; people know those of the group.
  [[nodiscard]] http::Problem in_group_ranks(http::Problem problem) const;

 private:
  std::vector<std::uint32_t> member_of_, run_rank_;  // by rank of the run, and by rank of the group
};

}  // namespace chorus::coordinator
