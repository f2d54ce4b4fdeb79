// Whose fault: from what every rank said, or did not say, to one problem that names the culprit.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "http/problem.hpp"

namespace chorus::coordinator {

// How a rank's part of a failed collective ended, as the coordinator saw it.
struct RankEnding {
  enum class Kind {
    succeeded,  // before the others failed
    failed,     // its worker reported `problem`
    lost,       // seen directly: its connection broke, or its lease passed; `problem.detail` says which
    silent,     // nothing until the deadline and the time to abort had passed
  };
  Kind kind = Kind::silent;
  std::uint32_t rank = 0;
  std::string worker;
  http::Problem problem;
};

// In this order, for survivors mostly report consequences:
//  1. ranks that the coordinator itself saw disappear: peer_lost;
//  2. failures that a rank has of its own (no memory, another version, another plan): as reported, the earliest first;
//  3. what most survivors say of each other: peer_lost, naming the ranks with the most votes; or, if these
//     answer the coordinator, their network: with the one that has lost them, if it is only one;
//  4. deadline_exceeded, naming the ranks that most waited for, or else the silent ones;
//  5. the first rank that gave up without being asked: peer_lost.
// `in_order` is the order in which the endings became known; at least one is not a success.
[[nodiscard]] http::Problem find_culprit(std::span<RankEnding const> in_order);

}  // namespace chorus::coordinator
