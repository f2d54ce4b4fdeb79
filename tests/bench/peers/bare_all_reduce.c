/* What an all_reduce of floats in shared memory takes at best between processes that do nothing else.
 *
 *   bare_all_reduce --ranks 4 [--processes 2] --bytes 1048576,67108864 --seconds S
 *
 * Each process, one per rank unless there are to be fewer, adds its part of all inputs into all outputs, with ordinary
 * stores and past the caches, or all of all inputs into its own outputs, between two barriers at which they spin, or step
 * aside where there are more of them than cores; they are bound as the ranks of the libraries are. As where libraries are
 * measured, two inputs alternate, and the result is compared after each iteration: the caches hold no more than they do
 * there. Beside it, what it takes only to read the others' inputs, which no algorithm can do without. Prints a JSON line
 * for each size and kind, medians of the slowest process. */
#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "arguments.h"
#include "bare_board.h"
#include "bound.h"

enum { floats_at_once = 8 };

enum kind { cached, streaming, own, reading, kinds };
static char const* const names_of_stores[kinds] = {"cached", "streaming", "own", "none"};

struct vectors {
  float* inputs[2][ranks_max];
  float* outputs[ranks_max];
};

static float sum_at(struct vectors const* vectors, unsigned ranks, int turn, size_t i) {
  float sum = 0;
  for (unsigned r = 0; r < ranks; ++r) sum += vectors->inputs[turn][r][i];
  return sum;
}

/* Blocks that stay in the first-level cache, so that many outputs cost no second addition. */
static void add_into_all(struct vectors const* vectors, unsigned ranks, int turn, size_t from, size_t to) {
  enum { block = 1024 };
  float sums[block];
  for (size_t at = from; at < to; at += block) {
    size_t const count = to - at < block ? to - at : block;
    float const* const first = vectors->inputs[turn][0] + at;
    float const* const second = vectors->inputs[turn][1] + at;
    for (size_t i = 0; i < count; ++i) sums[i] = first[i] + second[i];
    for (unsigned r = 2; r < ranks; ++r)
      for (size_t i = 0; i < count; ++i) sums[i] += vectors->inputs[turn][r][at + i];
    for (unsigned r = 0; r < ranks; ++r) memcpy(vectors->outputs[r] + at, sums, count * sizeof *sums);
  }
}

#if defined(__AVX2__)
static void stream_into_all(struct vectors const* vectors, unsigned ranks, int turn, size_t from, size_t to) {
  for (size_t i = from; i < to; i += floats_at_once) {
    __m256 sum = _mm256_load_ps(vectors->inputs[turn][0] + i);
    for (unsigned r = 1; r < ranks; ++r) sum = _mm256_add_ps(sum, _mm256_load_ps(vectors->inputs[turn][r] + i));
    for (unsigned r = 0; r < ranks; ++r) _mm256_stream_ps(vectors->outputs[r] + i, sum);
  }
  _mm_sfence();
}
#else
#define stream_into_all add_into_all
#endif

static void add_into_own(struct vectors const* vectors, unsigned ranks, unsigned rank, int turn, size_t floats) {
  float* const output = vectors->outputs[rank];
  float const* const first = vectors->inputs[turn][0];
  float const* const second = vectors->inputs[turn][1];
  for (size_t i = 0; i < floats; ++i) output[i] = first[i] + second[i];
  for (unsigned r = 2; r < ranks; ++r)
    for (size_t i = 0; i < floats; ++i) output[i] += vectors->inputs[turn][r][i];
}

static float volatile nobody_looks;

/* A vector's worth in each step, so that no addition waits for the one before. */
static void read_others(struct vectors const* vectors, unsigned ranks, unsigned rank, int turn, size_t floats) {
  enum { sums = 4 * floats_at_once };
  float sum[sums] = {0};
  for (unsigned r = 0; r < ranks; ++r) {
    if (r == rank) continue;
    float const* const input = vectors->inputs[turn][r];
    for (size_t at = 0; at + sums <= floats; at += sums)
      for (size_t i = 0; i < sums; ++i) sum[i] += input[at + i];
  }
  for (size_t i = 0; i < sums; ++i) nobody_looks = sum[i];
}

static struct vectors lay_out(unsigned ranks, char* memory, size_t bytes) {
  size_t const apart = bytes + 4096;
  struct vectors vectors;
  for (unsigned r = 0; r < ranks; ++r, memory += 3 * apart) {
    vectors.outputs[r] = (float*)memory;
    for (int turn = 0; turn < 2; ++turn) vectors.inputs[turn][r] = (float*)(memory + (size_t)(1 + turn) * apart);
  }
  return vectors;
}

/* The caller is process `self` of those at the board. */
static void measure(struct board* board, unsigned self, unsigned ranks, char* memory, size_t bytes, double seconds,
                    enum kind kind) {
  static double took[iterations_max];
  unsigned const processes = board->ranks;
  struct vectors const vectors = lay_out(ranks, memory, bytes);
  size_t const floats = bytes / sizeof(float), parts = floats / floats_at_once;
  for (int turn = 0; turn < 2; ++turn)
    for (unsigned rank = self; rank < ranks; rank += processes)
      for (size_t i = 0; i < floats; ++i) vectors.inputs[turn][rank][i] = (float)(i % 100 + (size_t)turn + rank);
  size_t const from = parts * self / processes * floats_at_once;
  size_t const to = parts * (self + 1) / processes * floats_at_once;
  size_t count = 0;
  /* As many iterations in all: what the machine can move, not a clock, says how many. */
  size_t const iterations = 20 + (size_t)(seconds * 1e10 / (double)bytes / ranks);
  for (; count < iterations && count < iterations_max; ++count) {
    int const turn = (int)(count % 2);
    meet(board);
    double const begin = now_seconds();
    if (kind == cached) add_into_all(&vectors, ranks, turn, from, to);
    if (kind == streaming) stream_into_all(&vectors, ranks, turn, from, to);
    for (unsigned rank = self; rank < ranks; rank += processes) {
      if (kind == own) add_into_own(&vectors, ranks, rank, turn, floats);
      if (kind == reading) read_others(&vectors, ranks, rank, turn, floats);
    }
    meet(board);
    took[count] = now_seconds() - begin;
    for (unsigned rank = self; rank < ranks; rank += processes)
      for (size_t i = 0; i < floats; ++i) {
        float const sum = sum_at(&vectors, ranks, turn, i);
        if (kind == reading) nobody_looks = sum;
        if (kind != reading && vectors.outputs[rank][i] != sum) {
          fprintf(stderr, "wrong sum\n");
          exit(1);
        }
      }
  }
  double const median = settle(board, self, took, count);
  if (self == 0)
    printf("{\"what\":\"%s\",\"ranks\":%u,\"processes\":%u,\"stores\":\"%s\",\"bytes\":%zu,\"us\":%.2f}\n",
           kind == reading ? "read" : "all_reduce", ranks, processes, names_of_stores[kind], bytes, median * 1e6);
}

static size_t whole_lines(char const* size) { return (size_t)number_of("--bytes", size) / 64 * 64; }

int main(int argc, char** argv) {
  double const seconds = number_argument(argc, argv, "--seconds", "0.3");
  double const ranks = number_argument(argc, argv, "--ranks", "2");
  double const processes = number_argument(argc, argv, "--processes", argument(argc, argv, "--ranks", "2"));
  if (ranks < 2 || ranks > ranks_max || processes < 1 || processes > ranks) {
    fprintf(stderr, "--ranks is 2 to %d, --processes no more\n", ranks_max);
    return 2;
  }
  char* const sizes = strdup(argument(argc, argv, "--bytes", "1048576,67108864"));
  struct board* const board = new_board((unsigned)processes);
  size_t largest = 0;
  char* rest = strdup(sizes);
  for (char* size = strtok_r(rest, ",", &rest); size != NULL; size = strtok_r(NULL, ",", &rest))
    if (whole_lines(size) > largest) largest = whole_lines(size);
  char* const memory = (char*)shared_pages((size_t)ranks * 3 * (largest + 4096));
  unsigned const self = split(board);
  stay_on_core(argc, argv, self, board->ranks);
  rest = sizes;
  for (char* size = strtok_r(rest, ",", &rest); size != NULL; size = strtok_r(NULL, ",", &rest))
    for (int kind = cached; kind < kinds; ++kind)
      measure(board, self, (unsigned)ranks, memory, whole_lines(size), seconds, (enum kind)kind);
  return join(board, self);
}
