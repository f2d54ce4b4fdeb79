/* What a launch of Chorus costs before anybody computes anything: the same messages between as many processes, in the
 * same order, over loopback TCP, one blocking thread each.
 *
 *   bare_launch --count K
 *
 * A client asks a coordinator; that sends a run to each of four workers; these exchange four bytes by recursive
 * doubling and answer; the coordinator sends each a commit, has their answers, and answers the client. Messages have
 * the sizes that those of `POST /v1/collectives` have. Prints one JSON line with the times that the client sees. */
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "arguments.h"
#include "measure.h"
#include "sockets.h"

enum { workers = 4, rounds = 2 };
enum { launch_bytes = 300, run_bytes = 900, report_bytes = 500, commit_bytes = 200, record_bytes = 3700 };
enum { frame_bytes = 64 }; /* four bytes of a tensor and what goes before them */

static int listen_anywhere(uint16_t* port) {
  int const listener = unpaced_socket();
  struct sockaddr_in address = loopback(0);
  socklen_t length = sizeof address;
  if (bind(listener, (struct sockaddr const*)&address, sizeof address) != 0 || listen(listener, workers) != 0 ||
      getsockname(listener, (struct sockaddr*)&address, &length) != 0)
    end_with("listen");
  *port = ntohs(address.sin_port);
  return listener;
}

static int accept_one(int listener) {
  int const descriptor = accept(listener, NULL, NULL);
  if (descriptor < 0) end_with("accept");
  set_up(descriptor);
  return descriptor;
}

static char text[record_bytes];

/* Peers of a round differ in one bit; the smaller one of a pair connects. */
static void work(int rank, int const* listeners, uint16_t const* ports, size_t count) {
  int const coordinator = accept_one(listeners[rank]);
  int peers[rounds];
  for (int round = 0; round < rounds; ++round) {
    int const peer = rank ^ (1 << round);
    receive_all(coordinator, text, 1); /* so that nobody accepts one of another round */
    peers[round] = rank < peer ? connect_to(ports[peer]) : accept_one(listeners[rank]);
    send_all(coordinator, text, 1);
  }
  for (size_t i = 0; i < count; ++i) {
    receive_all(coordinator, text, run_bytes);
    for (int round = 0; round < rounds; ++round) {
      send_all(peers[round], text, frame_bytes);
      receive_all(peers[round], text, frame_bytes);
    }
    send_all(coordinator, text, report_bytes);
    receive_all(coordinator, text, commit_bytes);
    send_all(coordinator, text, report_bytes);
  }
}

static void ask_all(int const* to, size_t bytes, size_t answer_bytes) {
  for (int w = 0; w < workers; ++w) send_all(to[w], text, bytes);
  for (int w = 0; w < workers; ++w) receive_all(to[w], text, answer_bytes);
}

static void coordinate(int listener, uint16_t const* ports, size_t count) {
  int to[workers];
  for (int w = 0; w < workers; ++w) to[w] = connect_to(ports[w]);
  for (int round = 0; round < rounds; ++round) ask_all(to, 1, 1);
  int const client = accept_one(listener);
  for (size_t i = 0; i < count; ++i) {
    receive_all(client, text, launch_bytes);
    ask_all(to, run_bytes, report_bytes);
    ask_all(to, commit_bytes, report_bytes);
    send_all(client, text, record_bytes);
  }
}

/* 0 in the child, which ends with its parent. */
static pid_t begin_child(void) {
  pid_t const child = fork();
  if (child < 0) end_with("fork");
  if (child == 0) prctl(PR_SET_PDEATHSIG, SIGKILL);
  return child;
}

int main(int argc, char** argv) {
  size_t const count = (size_t)number_argument(argc, argv, "--count", "500");
  uint16_t ports[workers + 1];
  int listeners[workers + 1];
  for (int i = 0; i <= workers; ++i) listeners[i] = listen_anywhere(&ports[i]);
  for (int w = 0; w < workers; ++w)
    if (begin_child() == 0) {
      work(w, listeners, ports, count);
      _exit(0);
    }
  if (begin_child() == 0) {
    coordinate(listeners[workers], ports, count);
    _exit(0);
  }
  int const coordinator = connect_to(ports[workers]);
  double* const seconds = new_pages(count * sizeof *seconds);
  for (size_t i = 0; i < count; ++i) {
    double const start = now_seconds();
    send_all(coordinator, text, launch_bytes);
    receive_all(coordinator, text, record_bytes);
    seconds[i] = now_seconds() - start;
  }
  printf("{\"system\":\"bare processes\",\"times_us\":");
  print_times_us(seconds, count);
  printf("}\n");
  while (wait(NULL) > 0) {}
  return 0;
}
