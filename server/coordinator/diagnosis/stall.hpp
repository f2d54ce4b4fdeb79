// Explains a stalled collective: from the progress of every rank to the ranks that the others wait for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "http/api/collectives/collectives.hpp"
#include "http/api/collectives/flight.hpp"

namespace chorus::coordinator {

// The result of asking one rank.
struct RankLook {
  enum class Kind : std::uint8_t {
    ended,      // the rank has reported, or is about to
    running,    // the rank runs; `progress` has its state
    busy,       // its worker prepares or finishes the run
    not_begun,  // its worker does not know the run
    silent,     // its worker did not answer
  };
  std::uint32_t rank = 0;  // of the group
  std::string worker;
  Kind kind = Kind::ended;
  api::RunProgress progress;  // its ranks are ranks of the run; members are identified by worker names
};

// Returns the ranks that the others wait for, in rank order. Uses the first rule that finds any: silent or not begun;
// busy; suspected by the ranks that wait for them; waiting for no rank themselves. `looks` by rank.
[[nodiscard]] std::vector<std::uint32_t> waited_for(std::vector<RankLook> const& looks);

// Returns how long no running rank has moved; at most `otherwise_s`, which also applies if no rank runs.
[[nodiscard]] double still_seconds(std::vector<RankLook> const& looks, double otherwise_s);

// Returns the stall without `since`.
[[nodiscard]] api::Stall to_stall(std::vector<RankLook> const& looks, double for_s);

}  // namespace chorus::coordinator
