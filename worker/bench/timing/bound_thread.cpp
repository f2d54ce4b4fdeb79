#include "worker/bench/timing/bound_thread.hpp"

#include <sched.h>

#include <cstddef>

namespace chorus::bench {

void stay_on_core(std::uint32_t n) {
  cpu_set_t allowed, one;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  auto left = n % static_cast<std::uint32_t>(CPU_COUNT(&allowed));
  for (std::size_t core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &allowed) || left-- != 0) continue;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    sched_setaffinity(0, sizeof one, &one);
    return;
  }
}

}  // namespace chorus::bench
