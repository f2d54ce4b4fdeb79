#pragma once

#include <cstdint>

namespace chorus::bench {

// Binds the calling thread, and those that it will start, to the n-th of the cores that it may use, modulo their
// number. If that is refused, the thread stays unbound.
void stay_on_core(std::uint32_t n);

}  // namespace chorus::bench
