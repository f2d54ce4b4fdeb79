/* Time, order statistics and memory for the small programs here; C and C++. */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static inline double now_seconds(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static inline int compare_doubles(void const* a, void const* b) {
  double const x = *(double const*)a, y = *(double const*)b;
  return (x > y) - (x < y);
}

/* Nearest rank, of sorted values. */
static inline double percentile_of(double const* sorted, size_t count, double fraction) {
  double const exact = fraction * (double)count;
  size_t rank = (size_t)exact;
  if ((double)rank < exact) ++rank;
  return sorted[rank == 0 ? 0 : rank - 1];
}

/* Of whole pages that are there already; ends the program with status 1 where memory is short. */
static inline void* new_pages(size_t bytes) {
  void* memory = NULL;
  if (posix_memalign(&memory, 4096, bytes + 1) != 0) {
    fprintf(stderr, "not enough memory for %zu bytes\n", bytes);
    exit(1);
  }
  memset(memory, 0, bytes);
  return memory;
}
