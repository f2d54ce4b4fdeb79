/* How fast each core is right now: all of them at once through the same loop, which needs no memory. A core of a virtual
 * machine that shares a real one with somebody else's work does about half of what it does alone, and nothing else tells.
 * And how far the first two are from each other: the host may have put them under one cache or far apart.
 *
 * core_speed [--seconds 0.005] prints {"turns_per_ns":[1.00,0.57],"line_ns":110}: one number per core, and what a cache
 * line takes to the second core and back, null where there is only one. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>

#include "arguments.h"
#include "measure.h"

enum { CORES_MAX = 256, ROUND_TRIPS = 5000 };

struct core {
  pthread_t thread;
  pthread_barrier_t* together;
  int number;
  unsigned index, count;
  double seconds, turns_per_ns;
};

/* Six operations that wait for each other in part, as programs are. */
static double turns_in(double seconds) {
  uint64_t a = 1, b = 2, c = 3, d = 4, e = 5, f = 6, turns = 0;
  double const begun = now_seconds();
  double spent = 0;
  do {
    for (int i = 0; i < 10000; ++i, ++turns) {
      a = a * 3 + 1;
      b += a >> 1;
      c ^= b + turns;
      d += c;
      e ^= d << 1;
      f += e;
      __asm__ volatile("" ::"r"(f));
    }
    spent = now_seconds() - begun;
  } while (spent < seconds);
  return (double)turns / (spent * 1e9);
}

/* Both call it at once: one says each number, the other says it again. */
static double line_ns(unsigned side) {
  static _Alignas(128) atomic_uint said;
  static _Alignas(128) atomic_uint answered;
  double const begun = now_seconds();
  for (unsigned number = 1; number <= ROUND_TRIPS; ++number) {
    atomic_uint* const mine = side == 0 ? &said : &answered;
    atomic_uint* const other = side == 0 ? &answered : &said;
    if (side == 0) atomic_store_explicit(mine, number, memory_order_release);
    while (atomic_load_explicit(other, memory_order_acquire) != number) {
    }
    if (side != 0) atomic_store_explicit(mine, number, memory_order_release);
  }
  return (now_seconds() - begun) * 1e9 / ROUND_TRIPS;
}

static double round_trip_ns;

static void* run(void* argument) {
  struct core* const core = (struct core*)argument;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(core->number, &one);
  if (sched_setaffinity(0, sizeof one, &one) != 0) exit(1);
  pthread_barrier_wait(core->together);
  core->turns_per_ns = turns_in(core->seconds);
  pthread_barrier_wait(core->together);
  if (core->count > 1 && core->index == 0) round_trip_ns = line_ns(0);
  if (core->index == 1) line_ns(1);
  return NULL;
}

int main(int argc, char** argv) {
  static struct core cores[CORES_MAX];
  double const seconds = number_argument(argc, argv, "--seconds", "0.005");
  cpu_set_t allowed;
  unsigned count = 0;
  pthread_barrier_t together;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return 1;
  for (int core = 0; core < CPU_SETSIZE && count < CORES_MAX; ++core)
    if (CPU_ISSET(core, &allowed)) {
      cores[count] = (struct core){0, &together, core, count, 0, seconds, 0};
      ++count;
    }
  pthread_barrier_init(&together, NULL, count);
  for (unsigned i = 0; i < count; ++i) cores[i].count = count;
  for (unsigned i = 0; i < count; ++i)
    if (pthread_create(&cores[i].thread, NULL, run, &cores[i]) != 0) return 1;
  printf("{\"turns_per_ns\":[");
  for (unsigned i = 0; i < count; ++i) {
    pthread_join(cores[i].thread, NULL);
    printf("%s%.3f", i == 0 ? "" : ",", cores[i].turns_per_ns);
  }
  if (count == 1)
    printf("],\"line_ns\":null}\n");
  else
    printf("],\"line_ns\":%.0f}\n", round_trip_ns);
  return 0;
}
