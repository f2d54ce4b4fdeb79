/* Blocking loopback sockets that move whole buffers; every error ends the program with status 1. C. */
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "unpaced.h"

/* Of one call: larger pieces are not faster, as the receiver then works in fewer, longer turns. */
static size_t const piece_bytes = (size_t)1 << 20;

static inline size_t piece_of(size_t bytes) { return bytes < piece_bytes ? bytes : piece_bytes; }

static inline void end_with(char const* what) {
  perror(what);
  exit(1);
}

static inline struct sockaddr_in loopback(uint16_t port) {
  struct sockaddr_in address = {0};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

/* For what is connected. */
static inline void set_up(int descriptor) {
  int const on = 1;
  struct timeval const limit = {60, 0};
  setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

static inline int connect_to(uint16_t port) {
  int const descriptor = unpaced_socket();
  struct sockaddr_in const address = loopback(port);
  if (connect(descriptor, (struct sockaddr const*)&address, sizeof address) != 0) end_with("connect");
  set_up(descriptor);
  return descriptor;
}

/* Both ends of a connection; they do not block. */
static inline void connect_pair(int pair[2]) {
  int const listener = unpaced_socket();
  struct sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  if (bind(listener, (struct sockaddr const*)&address, size) != 0 || listen(listener, 1) != 0 ||
      getsockname(listener, (struct sockaddr*)&address, &size) != 0)
    end_with("listen");
  pair[0] = connect_to(ntohs(address.sin_port));
  pair[1] = accept(listener, NULL, NULL);
  if (pair[1] < 0) end_with("accept");
  set_up(pair[1]);
  close(listener);
  for (int end = 0; end < 2; ++end) fcntl(pair[end], F_SETFL, O_NONBLOCK);
}

static inline void send_all(int descriptor, void const* data, size_t bytes) {
  for (size_t sent = 0; sent < bytes;) {
    ssize_t const now = send(descriptor, (char const*)data + sent, piece_of(bytes - sent), MSG_NOSIGNAL);
    if (now <= 0) end_with("send");
    sent += (size_t)now;
  }
}

static inline size_t receive_some(int descriptor, void* data, size_t bytes) {
  ssize_t const now = recv(descriptor, data, piece_of(bytes), 0);
  if (now < 0) end_with("receive");
  if (now == 0) {
    fprintf(stderr, "the other side closed the connection\n");
    exit(1);
  }
  return (size_t)now;
}

static inline void receive_all(int descriptor, void* data, size_t bytes) {
  for (size_t received = 0; received < bytes;)
    received += receive_some(descriptor, (char*)data + received, bytes - received);
}

/* The bytes that travel: other ones for every `turn`. */
static inline void fill_pattern(unsigned char* data, size_t bytes, unsigned turn) {
  uint64_t state = 0x9e3779b97f4a7c15u + turn;
  for (size_t i = 0; i < bytes; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    data[i] = (unsigned char)(state >> 56);
  }
}

/* [1.5,2.5]: microseconds, in the order in which they were measured. */
static inline void print_times_us(double const* seconds, size_t count) {
  printf("[");
  for (size_t i = 0; i < count; ++i) printf("%s%.2f", i == 0 ? "" : ",", seconds[i] * 1e6);
  printf("]");
}
