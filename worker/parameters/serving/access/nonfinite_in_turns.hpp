// count_nonfinite() of a large gradient, for the control thread.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstdint>

#include "worker/parameters/shard/pushes/push.hpp"

namespace chorus::parameters {

// Counts in portions of a millisecond or less, and lets other work of this thread run between two portions.
[[nodiscard]] boost::asio::awaitable<std::uint64_t> nonfinite_in_turns(Push push);

}  // namespace chorus::parameters
