// Computes over a long shard on several threads.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <cstdint>
#include <functional>

namespace chorus::parameters {

// Calls part(first, count) for slices of at most `each` that cover [0, total), each once, in any order, on this thread
// and on the pool's threads that are free. Returns when all slices are done. This thread may belong to the pool: it
// waits only for slices that another thread is computing, never for a thread that has not begun.
void compute_in_slices(boost::asio::any_io_executor threads, std::uint64_t total, std::uint64_t each,
                       std::function<void(std::uint64_t first, std::uint64_t count)> part);

}  // namespace chorus::parameters
