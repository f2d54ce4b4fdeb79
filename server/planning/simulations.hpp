// POST /v1/simulations and `chorus simulate`: the times of plans on a topology that need not exist.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "collectives/model/constants.hpp"
#include "http/api/collectives/simulations.hpp"
#include "http/json/problem.hpp"

namespace chorus::planning {

// Limit of work for a request, in rounds of single ranks; a million of them takes about a twentieth of a second.
inline constexpr std::uint64_t requested_rounds_max = 50'000'000;

// Simulates every algorithm that can do the operation, or the named one, each with the best of its arities and shapes
// unless the request fixes them. Up to 64 ranks the best one is found by simulation, above by the folded cost. Pure.
// `constants` apply to links without an override and without a given value.
// Problems: invalid_field, with pointers and the possible values; also for more than `rounds_max` rounds. `watch`, if
// given, is called before each algorithm with its name and the numbers of done and of all algorithms.
using Watch = std::function<void(std::string_view algorithm, std::size_t done, std::size_t all)>;
[[nodiscard]] http::Checked<api::SimulationAnswer> simulate(api::SimulationRequest const& request,
                                                            model::Constants const& constants,
                                                            std::uint64_t rounds_max = requested_rounds_max,
                                                            Watch const& watch = {});

}  // namespace chorus::planning
