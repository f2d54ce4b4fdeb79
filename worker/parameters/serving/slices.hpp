// Arithmetic over a long shard on as many threads as have time.
#pragma once

#include <boost/asio/thread_pool.hpp>
#include <cstdint>
#include <functional>

namespace chorus::parameters {

// Calls part(first, count) for slices of at most `each` that cover [0, total), each once, in any order: on this thread,
// and beside it on those threads of the pool that come before all is taken. Returns when all is done. This thread may
// be one of the pool's: it waits for slices that somebody computes, never for a thread that has not begun.
void compute_in_slices(boost::asio::thread_pool& threads, std::uint64_t total, std::uint64_t each,
                       std::function<void(std::uint64_t first, std::uint64_t count)> part);

}  // namespace chorus::parameters
