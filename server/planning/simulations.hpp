// POST /v1/simulations and `chorus simulate`: what plans would take on a topology that need not exist.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "collectives/model/constants.hpp"
#include "http/api/simulations.hpp"
#include "http/problem.hpp"

namespace chorus::planning {

// What may be computed for a request: rounds of single ranks, of which a million take about a twentieth of a second.
inline constexpr std::uint64_t requested_rounds_max = 50'000'000;

// Every algorithm that can do the operation, or the one that is named, each with the best of its arities and shapes
// unless the request fixes them: up to 64 ranks the best in simulation, above by the folded cost. Pure. Constants are
// those of links that the topology does not override and that are not given. Problems: invalid_field, with pointers,
// saying what would be possible; also where it would take more than `rounds_max` rounds. `watch`, if there is one, is
// told before each algorithm which it is, and how many have been done of how many.
using Watch = std::function<void(std::string_view algorithm, std::size_t done, std::size_t all)>;
[[nodiscard]] http::Checked<api::SimulationAnswer> simulate(api::SimulationRequest const& request,
                                                            model::Constants const& constants,
                                                            std::uint64_t rounds_max = requested_rounds_max,
                                                            Watch const& watch = {});

}  // namespace chorus::planning
