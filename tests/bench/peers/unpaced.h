/* Sockets of a loopback on which nothing is paced, as connections of Chorus there are not. C and C++. */
#pragma once

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

/* To connect or to listen with: a connection has to begin so (docs/explanation/performance.md), and what is accepted begins as
 * its listener. */
static inline int unpaced_socket(void) {
  static char const without_pacing[] = "reno";
  int const descriptor = socket(AF_INET, SOCK_STREAM, 0);
  if (descriptor < 0) {
    perror("socket");
    exit(1);
  }
  setsockopt(descriptor, IPPROTO_TCP, TCP_CONGESTION, without_pacing, sizeof without_pacing - 1);
  return descriptor;
}
