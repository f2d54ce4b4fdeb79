// From where every rank of a collective stands to whom it waits for, in one sentence.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "http/api/collectives.hpp"
#include "http/api/flight.hpp"

namespace chorus::coordinator {

// What a look at one rank has found.
struct RankLook {
  enum class Kind : std::uint8_t {
    ended,      // it has reported, or is about to
    running,    // `progress` says where
    busy,       // its worker prepares or finishes the run
    not_begun,  // its worker does not know the run
    silent,     // its worker did not answer
  };
  std::uint32_t rank = 0;  // of the group
  std::string worker;
  Kind kind = Kind::ended;
  api::RunProgress progress;  // its ranks are those of the run: members are told by their workers' names
};

// Ranks that the others wait for, in order: those that are silent or have not begun; or else those that are busy;
// or those that are suspected by who waits for them; or those that wait for nobody themselves. `looks` by rank.
[[nodiscard]] std::vector<std::uint32_t> waited_for(std::vector<RankLook> const& looks);

// For how long nothing has moved, as far as the ranks that run say; `otherwise_s` if none does.
[[nodiscard]] double still_seconds(std::vector<RankLook> const& looks, double otherwise_s);

// Everything but `since`.
[[nodiscard]] api::Stall to_stall(std::vector<RankLook> const& looks, double for_s);

}  // namespace chorus::coordinator
