/* What processes share that measure how fast anybody could be: a barrier at which they spin, memory, and the slowest one's
 * median. */
#pragma once

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#include "measure.h"
#include "sockets.h"

enum { ranks_max = 64, iterations_max = 20000 };

struct board {
  unsigned ranks;
  bool crowded; /* ranks outnumber cores: who waits steps aside */
  _Alignas(64) atomic_uint arrived;
  _Alignas(64) atomic_uint generation;
  _Alignas(64) double seconds[ranks_max];
};

/* At a multiple of a huge page, without which there are none. */
static inline void* shared_pages(size_t bytes) {
  size_t const whole = whole_huge_pages(bytes);
  char* const room = (char*)mmap(NULL, whole + huge_page_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (room == MAP_FAILED) end_with("mmap");
  void* const place = room + (huge_page_bytes - (uintptr_t)room % huge_page_bytes) % huge_page_bytes;
  void* const memory = mmap(place, whole, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  if (memory == MAP_FAILED) end_with("mmap");
  fill_huge_pages(memory, whole);
  return memory;
}

static inline struct board* new_board(unsigned ranks) {
  struct board* const board = (struct board*)shared_pages(sizeof *board);
  board->ranks = ranks;
  board->crowded = ranks > (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
  return board;
}

/* The caller and ranks - 1 children of it; each gets its number. */
static inline unsigned split(struct board const* board) {
  fflush(stdout);
  for (unsigned rank = 1; rank < board->ranks; ++rank) {
    pid_t const child = fork();
    if (child < 0) end_with("fork");
    if (child == 0) return rank;
  }
  return 0;
}

/* The status to end with: that of the caller, which waits for its children. */
static inline int join(struct board const* board, unsigned rank) {
  int failed = 0;
  for (unsigned child = 1; rank == 0 && child < board->ranks; ++child) {
    int status = 0;
    failed |= wait(&status) < 0 || status != 0;
  }
  return failed;
}

static inline void meet(struct board* board) {
  unsigned const generation = atomic_load(&board->generation);
  if (atomic_fetch_add(&board->arrived, 1) == board->ranks - 1) {
    atomic_store(&board->arrived, 0);
    atomic_store(&board->generation, generation + 1);
    return;
  }
  while (atomic_load(&board->generation) == generation)
    if (board->crowded) sched_yield();
}

/* The slowest one's median, from what all have measured. */
static inline double settle(struct board* board, unsigned rank, double* seconds, size_t count) {
  qsort(seconds, count, sizeof *seconds, compare_doubles);
  board->seconds[rank] = percentile_of(seconds, count, 0.5);
  meet(board);
  double slowest = 0;
  for (unsigned r = 0; r < board->ranks; ++r)
    if (board->seconds[r] > slowest) slowest = board->seconds[r];
  meet(board);
  return slowest;
}
