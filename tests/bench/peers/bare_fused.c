/* What many small tensors take at best, one by one and all at once, between two processes that do nothing else.
 *
 *   bare_fused --seconds S
 *
 * 100 tensors of 4 KiB of floats are added over loopback TCP, polled. One by one: a head of 64 bytes and the tensor go
 * each way, a hundred times, on one connection. All at once: each sends all and adds all, or each adds one half of them
 * and sends back the sums, with one connection for both directions and with one for each; what has come is added while
 * more comes. The results are compared. Prints a JSON line for each, medians of the slower process. */
#include <sys/uio.h>

#include "arguments.h"
#include "bare_board.h"

enum { tensors = 100, tensor_floats = 1024, floats = tensors * tensor_floats, head_bytes = 64, turn_bytes = 64 * 1024 };

struct pair {
  struct board* board;
  unsigned rank;
  int out, in;
  float* values;  /* in place */
  float* arrived; /* from the other one */
  char head[head_bytes];
};

static void add(float* into, float const* from, size_t count) {
  for (size_t i = 0; i < count; ++i) into[i] += from[i];
}

/* As much as the socket takes or has, up to `end`; nothing waits. Returns where it stands then. */
static size_t push(int out, float const* values, size_t at, size_t end) {
  if (at == end) return at;
  size_t const bytes = end - at < turn_bytes ? end - at : turn_bytes;
  ssize_t const sent = send(out, (char const*)values + at, bytes, MSG_NOSIGNAL);
  return sent > 0 ? at + (size_t)sent : at;
}

static size_t pull(int in, float* values, size_t at, size_t end) {
  if (at == end) return at;
  size_t const bytes = end - at < turn_bytes ? end - at : turn_bytes;
  ssize_t const came = recv(in, (char*)values + at, bytes, 0);
  if (came == 0) end_with("the other side closed the connection");
  return came > 0 ? at + (size_t)came : at;
}

static void one_by_one(struct pair* pair) {
  for (size_t t = 0; t < tensors; ++t) {
    float* const tensor = pair->values + t * tensor_floats;
    size_t const bytes = tensor_floats * sizeof *tensor;
    struct iovec parts[2] = {{pair->head, sizeof pair->head}, {tensor, bytes}};
    if (writev(pair->out, parts, 2) != (ssize_t)(sizeof pair->head + bytes)) end_with("send");
    char* const message = (char*)pair->arrived;
    for (size_t at = 0; at < sizeof pair->head + bytes;) {
      ssize_t const came = recv(pair->in, message + at, sizeof pair->head + bytes - at, 0);
      if (came == 0) end_with("the other side closed the connection");
      if (came > 0) at += (size_t)came;
    }
    add(tensor, (float const*)(message + sizeof pair->head), tensor_floats);
  }
}

/* Bytes of [0, end) that can be added, as whole floats. */
static size_t whole(size_t bytes) { return bytes / sizeof(float) * sizeof(float); }

static void add_bytes(float* into, float const* from, size_t begin, size_t end) {
  add(into + begin / sizeof(float), from + begin / sizeof(float), (end - begin) / sizeof(float));
}

static void all_to_the_other(struct pair* pair) {
  size_t const bytes = floats * sizeof(float);
  size_t sent = 0, came = 0, added = 0;
  while (sent < bytes || added < bytes) {
    sent = push(pair->out, pair->values, sent, bytes);
    came = pull(pair->in, pair->arrived, came, bytes);
    /* What has not been sent is still needed as it was. */
    size_t const may = whole(came < sent ? came : sent);
    add_bytes(pair->values, pair->arrived, added, may);
    added = may;
  }
}

static void half_each(struct pair* pair) {
  size_t const bytes = floats / 2 * sizeof(float);
  float* const mine = pair->values + pair->rank * (floats / 2);
  float* const theirs = pair->values + (1 - pair->rank) * (floats / 2);
  size_t sent = 0, came = 0, added = 0, returned = 0, results = 0;
  while (returned < bytes || results < bytes) {
    if (sent < bytes)
      sent = push(pair->out, theirs, sent, bytes);
    else
      returned = push(pair->out, mine, returned, added);
    if (came < bytes) {
      came = pull(pair->in, pair->arrived, came, bytes);
      add_bytes(mine, pair->arrived, added, whole(came));
      added = whole(came);
    } else {
      results = pull(pair->in, theirs, results, bytes);
    }
  }
}

static float value_of(unsigned rank, size_t turn, size_t i) { return (float)((turn + i) % 1000 + rank * 3); }

static double measure(struct pair* pair, void (*all_reduce)(struct pair*), double seconds) {
  static double took[iterations_max];
  size_t const iterations = 50 + (size_t)(seconds * 1000);
  size_t count = 0;
  for (; count < iterations && count < iterations_max; ++count) {
    for (size_t i = 0; i < floats; ++i) pair->values[i] = value_of(pair->rank, count, i);
    meet(pair->board);
    double const begin = now_seconds();
    all_reduce(pair);
    took[count] = now_seconds() - begin;
    for (size_t i = 0; i < floats; ++i) {
      if (pair->values[i] == value_of(0, count, i) + value_of(1, count, i)) continue;
      fprintf(stderr, "wrong sum\n");
      exit(1);
    }
  }
  return settle(pair->board, pair->rank, took, count);
}

int main(int argc, char** argv) {
  double const seconds = number_argument(argc, argv, "--seconds", "0.3");
  struct pair pair = {.board = new_board(2)};
  int both[2], there[2];
  connect_pair(both);
  connect_pair(there);
  unsigned const rank = pair.rank = split(pair.board);
  pair.values = (float*)shared_pages(floats * sizeof *pair.values);
  pair.arrived = (float*)shared_pages(floats * sizeof *pair.arrived);
  struct kind {
    char const* how;
    void (*all_reduce)(struct pair*);
    int connections;
  } const kinds[] = {{"one by one", one_by_one, 1},
                     {"all at once", all_to_the_other, 1},
                     {"all at once", all_to_the_other, 2},
                     {"all at once", half_each, 1},
                     {"all at once", half_each, 2}};
  for (size_t k = 0; k < sizeof kinds / sizeof *kinds; ++k) {
    bool const is_one = kinds[k].connections == 1;
    pair.out = is_one || rank == 0 ? both[rank] : there[rank];
    pair.in = is_one ? both[rank] : rank == 0 ? there[0] : both[1];
    double const median = measure(&pair, kinds[k].all_reduce, seconds);
    if (rank == 0)
      printf("{\"how\":\"%s\",\"halves\":%s,\"connections\":%d,\"us\":%.2f}\n", kinds[k].how,
             kinds[k].all_reduce == half_each ? "true" : "false", kinds[k].connections, median * 1e6);
  }
  return join(pair.board, rank);
}
