// echoing_member COORDINATOR ID: a member of group "g" that sends every message with tag 1 back to its sender, with tag
// 2, until a call fails or its process is killed.
#include <cstdio>
#include <vector>

#include "worker/api/worker.hpp"

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  chorus::WorkerOptions options;
  options.coordinator = argv[1];
  options.id = argv[2];
  options.log_level = "off";
  auto worker = chorus::Worker::start(options).value();
  auto group = worker.join("g", std::chrono::steady_clock::now() + std::chrono::seconds(60)).value();
  std::vector<std::uint8_t> bytes(8 << 20);
  for (;;) {
    auto const received = group.recv(bytes, chorus::any_source, {.tag = 1});
    if (received.has_error()) return 1;
    auto const echo = std::span(bytes).first(received->bytes);
    if (group.send(echo, received->source, {.tag = 2}).has_error()) return 1;
  }
}
