/* Each rank on a core of its own, as far as there are any: with more ranks than cores the scheduler would otherwise draw
 * which of them share one, for seconds on end. The same rule for everybody. C and C++. */
#pragma once

#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "arguments.h"

/* Flag: --bind auto|none. Call it before the library under test starts threads, which stay there, too. */
static inline void stay_on_core(int argc, char** argv, uint32_t rank, uint32_t ranks) {
  cpu_set_t allowed, one;
  if (strcmp(argument(argc, argv, "--bind", "none"), "auto") != 0) return;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0 || ranks <= (uint32_t)CPU_COUNT(&allowed)) return;
  uint32_t left = rank % (uint32_t)CPU_COUNT(&allowed);
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &allowed) || left-- != 0) continue;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    sched_setaffinity(0, sizeof one, &one);
    return;
  }
}

/* What an MPI's launcher tells its ranks; 0 if it does not. */
static inline uint32_t told(char const* by_openmpi, char const* by_mpich) {
  char const* const text = getenv(by_openmpi) != NULL ? getenv(by_openmpi) : getenv(by_mpich);
  return text == NULL ? 0 : (uint32_t)strtoul(text, NULL, 10);
}
