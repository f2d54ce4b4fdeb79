// The collective suite: the same tests for every kind of link.
#pragma once

#include <functional>
#include <memory>

#include "worker/engine/testing/cases/case.hpp"

namespace chorus::engine::testing {

using MakeFleet = std::function<std::unique_ptr<Fleet>(std::uint32_t ranks)>;

// Pairs of count and segment size that a suite runs. `few`: the two most telling pairs, on groups of four sizes.
// `groups`: the first of these pairs on groups of all eleven sizes, the second on groups of four sizes. `telling`:
// three pairs. `every`: all pairs. The last three also reduce every dtype by every algorithm.
enum class Depth : std::uint8_t { few, groups, telling, every };
void check_every_shape(MakeFleet const& make_fleet, Depth depth);
void check_hundred_in_a_row(MakeFleet const& make_fleet);
void check_several_at_once(MakeFleet const& make_fleet);
void check_late_starters(MakeFleet const& make_fleet);

}  // namespace chorus::engine::testing
