/* What two processes can do at best that do nothing else: the limit of a collective between two ranks on one host.
 *
 *   bare_pair --bytes 1048576,67108864 --seconds S
 *
 * For every size an all_reduce of floats in shared memory: each process adds half of both inputs into both outputs, with
 * ordinary stores and past the caches, between two barriers at which they spin. As where libraries are measured, two
 * inputs alternate, and the result is compared after each iteration: the caches hold no more than they do there. Then an
 * all_reduce of 4 bytes by one cache line each way, and an exchange of 68 bytes each way over loopback TCP, polled, with
 * one connection for both directions and with one for each. Prints a JSON line for each, medians of the slower process. */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/wait.h>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "arguments.h"
#include "measure.h"
#include "sockets.h"

enum { iterations_max = 20000, exchange_bytes = 68 };

struct board {
  _Alignas(64) atomic_uint arrived;
  _Alignas(64) atomic_uint generation;
  _Alignas(64) double seconds[2];
};

static void* shared_pages(size_t bytes) {
  void* const memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) end_with("mmap");
  madvise(memory, bytes, MADV_HUGEPAGE);
  memset(memory, 0, bytes);
#if defined(MADV_COLLAPSE)
  madvise(memory, bytes, MADV_COLLAPSE);
#endif
  return memory;
}

static void meet(struct board* board) {
  unsigned const generation = atomic_load(&board->generation);
  if (atomic_fetch_add(&board->arrived, 1) == 1) {
    atomic_store(&board->arrived, 0);
    atomic_store(&board->generation, generation + 1);
  } else {
    while (atomic_load(&board->generation) == generation) {
    }
  }
}

static void add_into_both(float* x, float* y, float const* a, float const* b, size_t elements) {
  for (size_t i = 0; i < elements; ++i) x[i] = y[i] = a[i] + b[i];
}

#if defined(__AVX2__)
static void stream_into_both(float* x, float* y, float const* a, float const* b, size_t elements) {
  for (size_t i = 0; i < elements; i += 8) {
    __m256 const sum = _mm256_add_ps(_mm256_load_ps(a + i), _mm256_load_ps(b + i));
    _mm256_stream_ps(x + i, sum);
    _mm256_stream_ps(y + i, sum);
  }
  _mm_sfence();
}
#else
#define stream_into_both add_into_both
#endif

/* The slower one's median, from what both have measured. */
static double settle(struct board* board, int rank, double* seconds, size_t count) {
  qsort(seconds, count, sizeof *seconds, compare_doubles);
  board->seconds[rank] = percentile_of(seconds, count, 0.5);
  meet(board);
  double const slower = board->seconds[board->seconds[1] > board->seconds[0]];
  meet(board);
  return slower;
}

static void all_reduce(struct board* board, int rank, char* memory, size_t bytes, double seconds, bool streams) {
  size_t const apart = bytes + 4096, half = bytes / sizeof(float) / 2;
  float* const outputs[2] = {(float*)memory, (float*)(memory + apart)};
  float* inputs[2][2];
  for (int turn = 0; turn < 2; ++turn)
    for (int r = 0; r < 2; ++r) inputs[turn][r] = (float*)(memory + (size_t)(2 + 2 * turn + r) * apart);
  for (int turn = 0; turn < 2; ++turn)
    for (size_t i = 0; i < bytes / sizeof(float); ++i) inputs[turn][rank][i] = (float)(i % 100 + (size_t)(turn + rank));
  static double took[iterations_max];
  size_t const from = (size_t)rank * half;
  size_t count = 0;
  /* As many iterations in both: what the machine can move, not a clock, says how many. */
  size_t const iterations = 20 + (size_t)(seconds * 2e10 / (double)bytes / 4);
  for (; count < iterations && count < iterations_max; ++count) {
    int const turn = (int)(count % 2);
    meet(board);
    double const begin = now_seconds();
    (streams ? stream_into_both : add_into_both)(outputs[rank] + from, outputs[1 - rank] + from,
                                                 inputs[turn][rank] + from, inputs[turn][1 - rank] + from, half);
    meet(board);
    took[count] = now_seconds() - begin;
    for (size_t i = 0; i < bytes / sizeof(float); ++i)
      if (outputs[rank][i] != (float)(2 * (i % 100 + (size_t)turn) + 1)) {
        fprintf(stderr, "wrong sum\n");
        exit(1);
      }
  }
  double const median = settle(board, rank, took, count);
  if (rank == 0)
    printf("{\"what\":\"all_reduce\",\"stores\":\"%s\",\"bytes\":%zu,\"us\":%.2f}\n", streams ? "streaming" : "cached",
           bytes, median * 1e6);
}

struct line {
  _Alignas(64) atomic_uint number;
  float value;
};

static void all_reduce_by_lines(struct board* board, int rank, struct line lines[2], double seconds) {
  static double took[iterations_max];
  size_t const iterations = 100 + (size_t)(seconds * 1e5);
  size_t count = 0;
  for (; count < iterations && count < iterations_max; ++count) {
    meet(board);
    double const begin = now_seconds();
    lines[1 - rank].value = (float)(count + (size_t)rank);
    atomic_store_explicit(&lines[1 - rank].number, (unsigned)count + 1, memory_order_release);
    while (atomic_load_explicit(&lines[rank].number, memory_order_acquire) != (unsigned)count + 1) {
    }
    float const sum = lines[rank].value + (float)(count + (size_t)rank);
    took[count] = now_seconds() - begin;
    if (sum != (float)(2 * count + 1)) {
      fprintf(stderr, "wrong sum\n");
      exit(1);
    }
  }
  double const median = settle(board, rank, took, count);
  if (rank == 0) printf("{\"what\":\"all_reduce\",\"stores\":\"line\",\"bytes\":4,\"us\":%.2f}\n", median * 1e6);
}

static void connect_pair(int pair[2]) {
  int const listener = socket(AF_INET, SOCK_STREAM, 0);
  struct sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  if (listener < 0 || bind(listener, (struct sockaddr const*)&address, size) != 0 || listen(listener, 1) != 0 ||
      getsockname(listener, (struct sockaddr*)&address, &size) != 0)
    end_with("listen");
  pair[0] = connect_to(ntohs(address.sin_port));
  pair[1] = accept(listener, NULL, NULL);
  if (pair[1] < 0) end_with("accept");
  set_up(pair[1]);
  close(listener);
  for (int end = 0; end < 2; ++end) fcntl(pair[end], F_SETFL, O_NONBLOCK);
}

static void exchange(struct board* board, int rank, int out, int in, int connections, double seconds) {
  static double took[iterations_max];
  char data[exchange_bytes] = {0};
  size_t const iterations = 100 + (size_t)(seconds * 5e4);
  size_t count = 0;
  for (; count < iterations && count < iterations_max; ++count) {
    meet(board);
    double const begin = now_seconds();
    send_all(out, data, sizeof data);
    for (size_t received = 0; received < sizeof data;) {
      ssize_t const now = recv(in, data + received, sizeof data - received, 0);
      if (now > 0) received += (size_t)now;
      if (now == 0) end_with("the other side closed the connection");
    }
    took[count] = now_seconds() - begin;
  }
  double const median = settle(board, rank, took, count);
  if (rank == 0)
    printf("{\"what\":\"exchange\",\"connections\":%d,\"bytes\":%d,\"us\":%.2f}\n", connections, exchange_bytes, median * 1e6);
}

int main(int argc, char** argv) {
  double const seconds = number_argument(argc, argv, "--seconds", "0.3");
  char* const sizes = strdup(argument(argc, argv, "--bytes", "1048576,67108864"));
  struct board* const board = shared_pages(sizeof *board);
  int both[2], there[2];
  connect_pair(both);
  connect_pair(there);
  size_t largest = 0;
  char* rest = strdup(sizes);
  for (char* size = strtok_r(rest, ",", &rest); size != NULL; size = strtok_r(NULL, ",", &rest)) {
    size_t const bytes = (size_t)number_of("--bytes", size) / 64 * 64;
    if (bytes > largest) largest = bytes;
  }
  char* const memory = shared_pages(6 * (largest + 4096));
  struct line* const lines = shared_pages(2 * sizeof *lines);
  fflush(stdout);
  pid_t const child = fork();
  if (child < 0) end_with("fork");
  int const rank = child == 0;
  rest = sizes;
  for (char* size = strtok_r(rest, ",", &rest); size != NULL; size = strtok_r(NULL, ",", &rest))
    for (int streams = 0; streams < 2; ++streams)
      all_reduce(board, rank, memory, (size_t)number_of("--bytes", size) / 64 * 64, seconds, streams == 1);
  all_reduce_by_lines(board, rank, lines, seconds);
  exchange(board, rank, both[rank], both[rank], 1, seconds);
  exchange(board, rank, rank == 0 ? both[0] : there[0], rank == 0 ? there[1] : both[1], 2, seconds);
  if (rank == 1) return 0;
  int status = 0;
  return waitpid(child, &status, 0) == child && status == 0 ? 0 : 1;
}
