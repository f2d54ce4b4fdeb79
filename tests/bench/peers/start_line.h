/* Where the ranks of a benchmark wait for each other in memory that they share, and where each leaves its times, so
 * that neither costs the library under test a message. C and C++. */
#pragma once

#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CACHE_LINE 64

struct start_line_memory { /* all zero at first: a file that was just created will do */
  uint32_t arrived;
  char apart_1[CACHE_LINE - sizeof(uint32_t)];
  uint32_t turn;
  /* What rank 0 decided about the iteration, by its parity. In the line for which all wait: to fetch another one after it
   * would make the others begin later than rank 0, which cost Open MPI an eighth of a call of 4 bytes. */
  uint32_t phase[2];
  char apart_2[CACHE_LINE - 3 * sizeof(uint32_t)];
  uint32_t wrong; /* somebody got a wrong result */
  char apart_3[CACHE_LINE - sizeof(uint32_t)];
  double seconds[]; /* of rank r's iteration i at r * iterations_max + i */
};

struct start_line {
  struct start_line_memory* memory;
  uint32_t ranks;
  bool blocks;  /* who waits sleeps: for libraries that have threads of their own, which need the cores meanwhile */
  bool crowded; /* ranks outnumber cores: who waits steps aside */
};

static inline struct start_line start_line_open(char const* file, uint32_t ranks, bool blocks, size_t iterations_max) {
  size_t const bytes = sizeof(struct start_line_memory) + ranks * iterations_max * sizeof(double);
  int const descriptor = open(file, O_RDWR | O_CREAT, 0600);
  if (descriptor < 0 || ftruncate(descriptor, (off_t)bytes) != 0) {
    perror(file);
    exit(1);
  }
  void* const memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, descriptor, 0);
  close(descriptor);
  if (memory == MAP_FAILED) {
    perror("mmap");
    exit(1);
  }
  struct start_line line = {(struct start_line_memory*)memory, ranks, blocks, ranks > sysconf(_SC_NPROCESSORS_ONLN)};
  return line;
}

/* Returns when every rank has called it: in all of them within a microsecond if they spin and each has a core. */
static inline void start_line_wait(struct start_line const* line) {
  enum { spins = 20000 };
  struct start_line_memory* const memory = line->memory;
  uint32_t const turn = __atomic_load_n(&memory->turn, __ATOMIC_ACQUIRE);
  if (__atomic_add_fetch(&memory->arrived, 1, __ATOMIC_ACQ_REL) == line->ranks) {
    __atomic_store_n(&memory->arrived, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&memory->turn, turn + 1, __ATOMIC_RELEASE);
    if (line->blocks) syscall(SYS_futex, &memory->turn, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    return;
  }
  for (int i = 0; __atomic_load_n(&memory->turn, __ATOMIC_ACQUIRE) == turn; ++i) {
    if (line->blocks) {
      syscall(SYS_futex, &memory->turn, FUTEX_WAIT, turn, NULL, NULL, 0);
    } else if (line->crowded || i > spins) {
      sched_yield();
    } else {
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
    }
  }
}
