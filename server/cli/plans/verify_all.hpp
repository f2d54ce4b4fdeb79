// Proves every plan of some algorithms, for some numbers of ranks.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "collectives/plan/algorithm.hpp"

namespace chorus::cli {

struct VerifyTotals {
  std::uint64_t plans = 0;
  std::uint64_t failed = 0;
};

struct VerifyWatcher {
  std::function<void(std::string const& algorithm, std::uint32_t ranks, VerifyTotals const& so_far)> progress;
  std::function<void(plan::Spec const& spec, std::string const& failure)> failure;
};

// Proves every algorithm, operation, number of ranks, class of root, arity and shape, in place and not
// (representative_specs). Each plan is built for all ranks and executed symbolically.
[[nodiscard]] VerifyTotals verify_all(std::span<plan::Algorithm const* const> algorithms,
                                      std::span<std::uint32_t const> ranks, VerifyWatcher const& watcher);

}  // namespace chorus::cli
