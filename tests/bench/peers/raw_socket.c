/* How fast a loopback TCP connection moves a buffer between two processes, without any protocol: what HTTP is held
 * against.
 *
 *   raw_socket --bytes N --count K
 *
 * Prints one JSON line for each direction: GET (the other process sends) and PUT (this one sends, and waits for one
 * byte of answer). Both sides' buffers are whole and in memory, on huge pages where they can be had. */
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "arguments.h"
#include "measure.h"
#include "sockets.h"

static void serve(int listener, size_t bytes, size_t count) {
  int const client = accept(listener, NULL, NULL);
  if (client < 0) end_with("accept");
  set_up(client);
  unsigned char* const data = new_pages(bytes);
  char signal = 0;
  fill_pattern(data, bytes, 0);
  for (size_t i = 0; i < count; ++i) {
    receive_all(client, &signal, 1);
    send_all(client, data, bytes);
  }
  for (size_t i = 0; i < count; ++i) {
    receive_all(client, data, bytes);
    send_all(client, &signal, 1);
  }
}

static void print_direction(char const* direction, size_t bytes, double const* seconds, size_t count, int correct) {
  printf("{\"system\":\"raw socket\",\"method\":\"%s\",\"bytes\":%zu,\"correct\":%s,\"times_us\":", direction, bytes,
         correct ? "true" : "false");
  print_times_us(seconds, count);
  printf("}\n");
}

int main(int argc, char** argv) {
  size_t const bytes = (size_t)number_argument(argc, argv, "--bytes", "67108864");
  size_t const count = (size_t)number_argument(argc, argv, "--count", "10");
  int const listener = unpaced_socket();
  struct sockaddr_in address = loopback(0);
  socklen_t length = sizeof address;
  if (bind(listener, (struct sockaddr const*)&address, sizeof address) != 0 || listen(listener, 1) != 0 ||
      getsockname(listener, (struct sockaddr*)&address, &length) != 0)
    end_with("listen");
  pid_t const child = fork();
  if (child < 0) end_with("fork");
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    serve(listener, bytes, count);
    _exit(0);
  }
  int const server = connect_to(ntohs(address.sin_port));
  unsigned char *const expected = new_pages(bytes), *const data = new_pages(bytes);
  double* const seconds = calloc(count, sizeof(double));
  char signal = 0;
  int correct = 1;
  fill_pattern(expected, bytes, 0);
  for (size_t i = 0; i < count; ++i) {
    memset(data, 0, bytes);
    double const begin = now_seconds();
    send_all(server, &signal, 1);
    receive_all(server, data, bytes);
    seconds[i] = now_seconds() - begin;
    correct = correct && memcmp(data, expected, bytes) == 0;
  }
  print_direction("GET", bytes, seconds, count, correct);
  for (size_t i = 0; i < count; ++i) {
    double const begin = now_seconds();
    send_all(server, expected, bytes);
    receive_all(server, &signal, 1);
    seconds[i] = now_seconds() - begin;
  }
  print_direction("PUT", bytes, seconds, count, 1);
  int status = 0;
  return waitpid(child, &status, 0) == child && status == 0 ? 0 : 1;
}
