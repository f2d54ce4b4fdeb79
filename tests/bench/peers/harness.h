/* Measures one library's all_reduce of f32 sums: the same loop for every peer. C and C++.
 *
 * Each iteration begins together (the library's own barrier, which also lets it finish what it still does, then the
 * start line); its time is the slowest rank's; its result is compared exactly, when all have theirs: where ranks share
 * cores, who compares would take them from who still adds, a tenth of 1 MiB at p = 8. Two inputs in turn, so that a
 * result which is left over from the iteration before is not taken for a right one. */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>

#include "arguments.h"
#include "measure.h"
#include "start_line.h"

struct vectors {
  float* input[2];
  float* expected[2];
  float* output;
  size_t count;
};

struct peer {
  void* state;
  bool blocks;                                           /* see struct start_line */
  void (*prepare)(void* state, struct vectors* vectors); /* once per size; NULL: nothing to do */
  void (*barrier)(void* state);                          /* NULL: nothing to do */
  void (*load)(void* state, int which);                  /* before the start line, not timed; NULL: nothing to do */
  void (*all_reduce)(void* state, int which);            /* input[which] of all ranks into output */
};

enum phase { PHASE_WARM_UP, PHASE_MEASURE, PHASE_END };

struct harness {
  struct start_line line;
  uint32_t rank;
  size_t iterations_max, warmup_max;
  double seconds;
};

/* 0, 1 or 2, so that every order of additions is exact; in odd turns one more, so that no sum is that of the turn
 * before. */
static inline float element_of(uint32_t rank, size_t i, int which) {
  return (float)(((i * 2654435761u + rank * 40503u) >> 7 & 1) + (size_t)which);
}

static inline float* new_floats(size_t count) { return (float*)new_pages(count * sizeof(float)); }

static inline struct vectors new_vectors(size_t count, uint32_t rank, uint32_t ranks) {
  struct vectors vectors = {{NULL, NULL}, {NULL, NULL}, new_floats(count), count};
  for (int which = 0; which < 2; ++which) {
    vectors.input[which] = new_floats(count);
    vectors.expected[which] = new_floats(count);
    for (size_t i = 0; i < count; ++i) {
      vectors.input[which][i] = element_of(rank, i, which);
      float sum = 0;
      for (uint32_t r = 0; r < ranks; ++r) sum += element_of(r, i, which);
      vectors.expected[which][i] = sum;
    }
  }
  return vectors;
}

static inline void free_vectors(struct vectors* vectors) {
  for (int which = 0; which < 2; ++which) {
    free_pages(vectors->input[which]);
    free_pages(vectors->expected[which]);
  }
  free_pages(vectors->output);
}

/* One result line, from rank 0. */
static inline void print_times(struct harness const* harness, size_t bytes, size_t iterations) {
  struct start_line_memory* const memory = harness->line.memory;
  double* const slowest = (double*)calloc(iterations, sizeof(double));
  for (size_t i = 0; i < iterations; ++i)
    for (uint32_t r = 0; r < harness->line.ranks; ++r) {
      double const seconds = memory->seconds[r * harness->iterations_max + i];
      if (seconds > slowest[i]) slowest[i] = seconds;
    }
  qsort(slowest, iterations, sizeof(double), compare_doubles);
  printf(
      "{\"op\":\"all_reduce\",\"ranks\":%u,\"bytes\":%zu,\"dtype\":\"f32\",\"iterations\":%zu,\"p50_us\":%.2f,"
      "\"p99_us\":%.2f,\"correct\":%s}\n",
      harness->line.ranks, bytes, iterations, percentile_of(slowest, iterations, 0.5) * 1e6,
      percentile_of(slowest, iterations, 0.99) * 1e6,
      __atomic_load_n(&memory->wrong, __ATOMIC_ACQUIRE) == 0 ? "true" : "false");
  fflush(stdout);
  free(slowest);
}

/* Rank 0's progress through the phases of one size. */
struct progress {
  size_t warmed_up, measured;
  double began, spent; /* `spent`: in iterations of this phase, as rank 0 saw them */
};

static inline enum phase next_phase(struct harness const* harness, struct progress const* progress) {
  double const warmup_seconds = 0.2;
  size_t const enough = 3;
  bool const cold = progress->warmed_up == 0;
  bool const warm = progress->warmed_up >= harness->warmup_max || now_seconds() - progress->began > warmup_seconds;
  if (progress->measured == 0 && (cold || !warm)) return PHASE_WARM_UP;
  if (progress->measured == 0) return PHASE_MEASURE;
  if (progress->measured >= harness->iterations_max) return PHASE_END;
  if (progress->spent >= harness->seconds && progress->measured >= enough) return PHASE_END;
  /* Where ranks outnumber cores a barrier may take far longer than what it surrounds. */
  return now_seconds() - progress->began > 8 * harness->seconds + 1 ? PHASE_END : PHASE_MEASURE;
}

static inline void measure_size(struct harness const* harness, struct peer const* peer, size_t bytes) {
  struct start_line_memory* const memory = harness->line.memory;
  struct vectors vectors = new_vectors(bytes / sizeof(float), harness->rank, harness->line.ranks);
  double* const seconds = memory->seconds + harness->rank * harness->iterations_max;
  struct progress progress = {0, 0, now_seconds(), 0};
  if (harness->rank == 0) __atomic_store_n(&memory->wrong, 0, __ATOMIC_RELEASE);
  if (peer->prepare != NULL) peer->prepare(peer->state, &vectors);
  for (size_t turn = 0;; ++turn) {
    int const which = (int)(turn % 2);
    if (harness->rank == 0) __atomic_store_n(&memory->phase[which], next_phase(harness, &progress), __ATOMIC_RELEASE);
    if (peer->load != NULL) peer->load(peer->state, which);
    if (peer->barrier != NULL) peer->barrier(peer->state);
    start_line_wait(&harness->line);
    enum phase const phase = (enum phase)__atomic_load_n(&memory->phase[which], __ATOMIC_ACQUIRE);
    if (phase == PHASE_END) break;

    double const begin = now_seconds();
    peer->all_reduce(peer->state, which);
    double const end = now_seconds();

    if (peer->barrier != NULL) peer->barrier(peer->state);
    start_line_wait(&harness->line);
    if (memcmp(vectors.output, vectors.expected[which], bytes) != 0)
      __atomic_store_n(&memory->wrong, 1, __ATOMIC_RELEASE);
    if (phase == PHASE_WARM_UP) {
      ++progress.warmed_up;
    } else {
      seconds[progress.measured++] = end - begin;
      progress.spent += end - begin;
    }
  }
  if (harness->rank == 0) print_times(harness, bytes, progress.measured);
  start_line_wait(&harness->line);
  free_vectors(&vectors);
}

/* Flags: --shared FILE (a new file in memory), --bytes 4,1024,..., --seconds S, --iterations N, --warmup N. */
static inline void measure_all(int argc, char** argv, struct peer const* peer, uint32_t rank, uint32_t ranks) {
  struct harness harness;
  harness.rank = rank;
  harness.seconds = number_argument(argc, argv, "--seconds", "0.3");
  harness.iterations_max = (size_t)number_argument(argc, argv, "--iterations", "10000");
  harness.warmup_max = (size_t)number_argument(argc, argv, "--warmup", "5");
  harness.line = start_line_open(needed_argument(argc, argv, "--shared"), ranks, peer->blocks, harness.iterations_max);
  char* const sizes = strdup(argument(argc, argv, "--bytes", "4"));
  char* rest = sizes;
  for (char* size = strtok_r(rest, ",", &rest); size != NULL; size = strtok_r(NULL, ",", &rest))
    measure_size(&harness, peer, (size_t)number_of("--bytes", size));
  free(sizes);
}

/* A rank does not outlive who started it. */
static inline void die_with_parent(void) { prctl(PR_SET_PDEATHSIG, SIGKILL); }
