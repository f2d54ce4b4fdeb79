/* What two processes can do at best that do nothing else than tell each other a few bytes.
 *
 *   bare_pair --seconds S
 *
 * An all_reduce of 4 bytes by one cache line each way, and an exchange of 68 bytes each way over loopback TCP, polled, with
 * one connection for both directions and with one for each. Prints a JSON line for each, medians of the slower process. */
#include "arguments.h"
#include "bare_board.h"

enum { exchange_bytes = 68 };

struct line {
  _Alignas(64) atomic_uint number;
  float value;
};

static void all_reduce_by_lines(struct board* board, unsigned rank, struct line lines[2], double seconds) {
  static double took[iterations_max];
  size_t const iterations = 100 + (size_t)(seconds * 1e5);
  size_t count = 0;
  for (; count < iterations && count < iterations_max; ++count) {
    meet(board);
    double const begin = now_seconds();
    lines[1 - rank].value = (float)(count + rank);
    atomic_store_explicit(&lines[1 - rank].number, (unsigned)count + 1, memory_order_release);
    while (atomic_load_explicit(&lines[rank].number, memory_order_acquire) != (unsigned)count + 1) {
    }
    float const sum = lines[rank].value + (float)(count + rank);
    took[count] = now_seconds() - begin;
    if (sum != (float)(2 * count + 1)) {
      fprintf(stderr, "wrong sum\n");
      exit(1);
    }
  }
  double const median = settle(board, rank, took, count);
  if (rank == 0) printf("{\"what\":\"all_reduce\",\"ranks\":2,\"stores\":\"line\",\"bytes\":4,\"us\":%.2f}\n", median * 1e6);
}

static void exchange(struct board* board, unsigned rank, int out, int in, int connections, double seconds) {
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
  struct board* const board = new_board(2);
  int both[2], there[2];
  connect_pair(both);
  connect_pair(there);
  struct line* const lines = (struct line*)shared_pages(2 * sizeof *lines);
  unsigned const rank = split(board);
  all_reduce_by_lines(board, rank, lines, seconds);
  exchange(board, rank, both[rank], both[rank], 1, seconds);
  exchange(board, rank, rank == 0 ? both[0] : there[0], rank == 0 ? there[1] : both[1], 2, seconds);
  return join(board, rank);
}
