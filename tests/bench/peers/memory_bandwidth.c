/* How fast memory is copied, and two vectors added into a third, by one thread and by one on every core: the limit of
 * what an all_reduce on one host can do.
 *
 *   memory_bandwidth --bytes 1048576,67108864 --seconds S --threads N
 *
 * Prints a JSON line for each; GBps counts the bytes of one vector, as an all_reduce does, for all threads together. */
#include <pthread.h>
#include <stdbool.h>

#include "arguments.h"
#include "measure.h"

struct job {
  pthread_barrier_t* together;
  size_t bytes, passes;
  bool adds;
  double seconds;
};

static void pass(float* restrict to, float const* restrict a, float const* restrict b, struct job const* job) {
  if (!job->adds) {
    memcpy(to, a, job->bytes);
    return;
  }
  for (size_t i = 0; i < job->bytes / sizeof(float); ++i) to[i] = a[i] + b[i];
}

static void* work(void* argument) {
  struct job* const job = argument;
  float *const to = new_pages(job->bytes), *const a = new_pages(job->bytes), *const b = new_pages(job->bytes);
  pass(to, a, b, job);
  pthread_barrier_wait(job->together);
  double const begin = now_seconds();
  for (size_t i = 0; i < job->passes; ++i) {
    pass(to, a, b, job);
    __asm__ volatile("" : : "r"(to) : "memory");
  }
  pthread_barrier_wait(job->together);
  job->seconds = now_seconds() - begin;
  free_pages(to);
  free_pages(a);
  free_pages(b);
  return NULL;
}

static double run(size_t threads, size_t bytes, size_t passes, bool adds) {
  pthread_barrier_t together;
  pthread_barrier_init(&together, NULL, (unsigned)threads);
  pthread_t* const handles = calloc(threads, sizeof(pthread_t));
  struct job* const jobs = calloc(threads, sizeof(struct job));
  for (size_t t = 0; t < threads; ++t) {
    jobs[t] = (struct job){&together, bytes, passes, adds, 0};
    if (pthread_create(&handles[t], NULL, work, &jobs[t]) != 0) {
      fprintf(stderr, "no thread could be started\n");
      exit(1);
    }
  }
  for (size_t t = 0; t < threads; ++t) pthread_join(handles[t], NULL);
  double const seconds = jobs[0].seconds;
  pthread_barrier_destroy(&together);
  free(handles);
  free(jobs);
  return seconds;
}

/* The best of some: what disturbs only ever slows down. */
static void measure(size_t threads, size_t bytes, double seconds, bool adds) {
  enum { attempts = 5 };
  double const once = run(threads, bytes, 1, adds);
  size_t const passes = 1 + (size_t)(seconds / attempts / once);
  double best = run(threads, bytes, passes, adds);
  for (int i = 1; i < attempts; ++i) {
    double const took = run(threads, bytes, passes, adds);
    if (took < best) best = took;
  }
  printf("{\"what\":\"%s\",\"threads\":%zu,\"bytes\":%zu,\"GBps\":%.3f}\n", adds ? "add" : "copy", threads, bytes,
         (double)(threads * passes * bytes) / best * 1e-9);
  fflush(stdout);
}

int main(int argc, char** argv) {
  size_t const threads_max = (size_t)number_argument(argc, argv, "--threads", "1");
  double const seconds = number_argument(argc, argv, "--seconds", "0.3");
  char* const sizes = strdup(argument(argc, argv, "--bytes", "1048576,67108864"));
  char* rest = sizes;
  for (char* size = strtok_r(rest, ",", &rest); size != NULL; size = strtok_r(NULL, ",", &rest))
    for (int adds = 0; adds < 2; ++adds) {
      size_t const bytes = (size_t)number_of("--bytes", size);
      measure(1, bytes, seconds, adds);
      if (threads_max > 1) measure(threads_max, bytes, seconds, adds);
    }
  free(sizes);
  return 0;
}
