/* Time, order statistics and memory for the small programs here; C and C++. */
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* since Linux 6.1, unknown to the C library; older kernels refuse it, which does no harm */
#endif

static size_t const huge_page_bytes = (size_t)2 << 20;

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

/* At least one. */
static inline size_t whole_huge_pages(size_t bytes) {
  size_t const pages = bytes / huge_page_bytes + (bytes % huge_page_bytes != 0);
  return (pages == 0 ? 1 : pages) * huge_page_bytes;
}

/* Wishes: where there are no huge pages the memory works as well, more slowly. Memory that was used before, or that is
 * shared, gets them by the second one alone. */
static inline void fill_huge_pages(void* memory, size_t bytes) {
  madvise(memory, bytes, MADV_HUGEPAGE);
  memset(memory, 0, bytes);
  madvise(memory, bytes, MADV_COLLAPSE);
}

/* Pages that are there already, huge ones where they can be had, as Chorus' arena has them: no library is to wait for
 * page tables where another does not. Each begins some small pages behind the one before: what begins at huge pages alone
 * is in each other's way in the caches. For free_pages(). Ends the program with status 1 where memory is short. */
static inline void* new_pages(size_t bytes) {
  static size_t calls;
  size_t const small_page = 4096, apart = 9 * small_page, places = 8;
  size_t const offset = __atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED) % places * apart;
  size_t const whole = whole_huge_pages(offset + bytes);
  void* memory = NULL;
  if (posix_memalign(&memory, huge_page_bytes, whole) != 0) {
    fprintf(stderr, "not enough memory for %zu bytes\n", bytes);
    exit(1);
  }
  fill_huge_pages(memory, whole);
  return (char*)memory + offset;
}

static inline void free_pages(void* memory) { free((char*)memory - (uintptr_t)memory % huge_page_bytes); }
