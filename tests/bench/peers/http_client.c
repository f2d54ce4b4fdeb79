/* One keep-alive connection that makes the same HTTP/1.1 request again and again, and times each.
 *
 *   http_client --port P --method GET|PUT|POST --path /x --count K
 *               [--headers 'A: b\nC: d'] [--bytes N | --body TEXT] [--expect TEXT] [--turn T]
 *
 * PUT sends and GET expects the N bytes of pattern T; POST sends TEXT. Answers must be 2xx and, with --expect, contain
 * the text. Prints one JSON line with the time of each request, from the first byte sent to the last one received. */
#include <strings.h>

#include "arguments.h"
#include "measure.h"
#include "sockets.h"

enum { head_limit = 16384 };

struct answer {
  int status;
  size_t body_bytes;
  unsigned char* body;
  size_t capacity;
};

/* Of the header, up to the end of its line; NULL where there is none. */
static char const* header_value(char const* head, char const* name) {
  for (char const* line = strstr(head, "\r\n"); line != NULL; line = strstr(line + 2, "\r\n"))
    if (strncasecmp(line + 2, name, strlen(name)) == 0 && line[2 + strlen(name)] == ':') {
      char const* value = line + 2 + strlen(name) + 1;
      while (*value == ' ') ++value;
      return value;
    }
  return NULL;
}

static void end_because(char const* what, char const* detail) {
  fprintf(stderr, "%s: %.400s\n", what, detail);
  exit(1);
}

/* The body's length as the header says it; 0 without a header. */
static size_t body_length(char const* head) {
  if (header_value(head, "Transfer-Encoding") != NULL) end_because("an answer in chunks is not understood", head);
  char const* const value = header_value(head, "Content-Length");
  if (value == NULL) return 0;
  char* end = NULL;
  unsigned long long const bytes = strtoull(value, &end, 10);
  if (end == value || *end != '\r') end_because("Content-Length is not a number", value);
  return bytes;
}

/* The body goes straight from the socket to where it belongs, but for what came with the head. */
static void receive_answer(int server, struct answer* answer) {
  static char head[head_limit + 1];
  size_t received = 0;
  char* end = NULL;
  while (end == NULL) {
    if (received == head_limit) end_because("the head of the answer is too long", head);
    received += receive_some(server, head + received, head_limit - received);
    head[received] = '\0';
    end = strstr(head, "\r\n\r\n");
  }
  size_t const early = received - (size_t)(end + 4 - head);
  end[2] = '\0';
  if (strncmp(head, "HTTP/1.1 ", 9) != 0) end_because("not an HTTP/1.1 answer", head);
  answer->status = (int)strtol(head + 9, NULL, 10);
  answer->body_bytes = body_length(head);
  if (early > answer->body_bytes || answer->body_bytes > answer->capacity) end_because("the body is too long", head);
  memcpy(answer->body, end + 4, early);
  receive_all(server, answer->body + early, answer->body_bytes - early);
  answer->body[answer->body_bytes] = '\0';
}

/* What the two characters \n stand for in an argument becomes the end of a header line. */
static void append_headers(char* request, size_t limit, char const* headers) {
  char const* line = headers;
  while (*line != '\0') {
    char const* const end = strstr(line, "\\n");
    size_t const length = end == NULL ? strlen(line) : (size_t)(end - line);
    size_t const used = strlen(request);
    snprintf(request + used, limit - used, "%.*s\r\n", (int)length, line);
    line += length + (end == NULL ? 0 : 2);
  }
}

int main(int argc, char** argv) {
  char const* const method = argument(argc, argv, "--method", "GET");
  char const* const path = argument(argc, argv, "--path", "/");
  char const* const text = argument(argc, argv, "--body", NULL);
  char const* const expected_text = argument(argc, argv, "--expect", NULL);
  size_t const bytes = (size_t)number_argument(argc, argv, "--bytes", "0");
  size_t const count = (size_t)number_argument(argc, argv, "--count", "1");
  unsigned const turn = (unsigned)number_argument(argc, argv, "--turn", "0");
  int const downloads = strcmp(method, "GET") == 0;

  unsigned char* const pattern = new_pages(bytes);
  fill_pattern(pattern, bytes, turn);
  void const* const body = text != NULL ? (void const*)text : pattern;
  size_t const body_bytes = downloads ? 0 : text != NULL ? strlen(text) : bytes;
  struct answer answer = {0, 0, NULL, bytes + (1u << 20)};
  answer.body = new_pages(answer.capacity + 1); /* for the end of a text */

  static char request[head_limit];
  snprintf(request, sizeof request, "%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\n", method, path);
  if (!downloads)
    snprintf(request + strlen(request), sizeof request - strlen(request), "Content-Length: %zu\r\n", body_bytes);
  append_headers(request, sizeof request, argument(argc, argv, "--headers", ""));
  snprintf(request + strlen(request), sizeof request - strlen(request), "\r\n");

  int const server = connect_to((uint16_t)number_argument(argc, argv, "--port", "80"));
  double* const seconds = calloc(count, sizeof(double));
  int correct = 1;
  for (size_t i = 0; i < count; ++i) {
    if (downloads) memset(answer.body, 0, bytes);
    double const begin = now_seconds();
    send_all(server, request, strlen(request));
    if (body_bytes != 0) send_all(server, body, body_bytes);
    receive_answer(server, &answer);
    seconds[i] = now_seconds() - begin;
    if (answer.status / 100 != 2) end_because("the request was refused", (char const*)answer.body);
    if (downloads && bytes != 0)
      correct = correct && answer.body_bytes == bytes && memcmp(answer.body, pattern, bytes) == 0;
    if (expected_text != NULL && strstr((char const*)answer.body, expected_text) == NULL)
      end_because("the answer is not the one expected", (char const*)answer.body);
  }
  printf("{\"method\":\"%s\",\"bytes\":%zu,\"correct\":%s,\"times_us\":", method, bytes, correct ? "true" : "false");
  print_times_us(seconds, count);
  printf("}\n");
  return 0;
}
