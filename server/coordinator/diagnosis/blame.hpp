// Finds the culprit of a failed collective from the reports of all ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "http/json/problem.hpp"

namespace chorus::coordinator {

// How a rank's part of a failed collective ended, as the coordinator knows it.
struct RankEnding {
  enum class Kind {
    succeeded,  // before the others failed
    failed,     // its worker reported `problem`
    lost,       // the coordinator saw its connection break or its lease pass; `problem.detail` says which
    silent,     // no report until the deadline and the time to abort had passed
  };
  Kind kind = Kind::silent;
  std::uint32_t rank = 0;
  std::string worker;
  http::Problem problem;
};

// Looks for causes in this order, because survivors mostly report consequences:
// 1. ranks that the coordinator itself saw disappear: peer_lost;
// 2. a rank's own failure (no memory, another version, another plan): as reported, the earliest first;
// 3. the ranks that most survivors name: peer_lost. If these ranks answer the coordinator, the network is named
//    instead, with the accuser if there is only one;
// 4. deadline_exceeded, naming the ranks that most waited for, or else the silent ones;
// 5. the first rank that gave up without being asked: peer_lost.
// `in_order` is the order in which the endings became known; at least one is not a success.
[[nodiscard]] http::Problem find_culprit(std::span<RankEnding const> in_order);

}  // namespace chorus::coordinator
