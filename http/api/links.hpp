// Links: how a worker reaches those that it has talked to. GET /v1/links at the worker.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace chorus::api {

struct PeerLink {
  std::string worker;
  std::string link;  // "shm", "tcp", "shm and tcp" while the directions differ, "none" without a connection
  std::uint32_t connections = 0;
  std::optional<std::string> why_not_shm;  // where shared memory was tried and is not used
  std::optional<std::string> why_not_ipc;  // where memory of GPUs was lent, and is not read where it lies
  std::uint64_t sent_bytes = 0;            // what goes through the link: not what GPUs read where it lies
  std::uint64_t received_bytes = 0;
  double send_busy_seconds = 0;  // time with something queued to the peer: bytes per busy second are the link's speed
};

struct PeerLinkList {
  std::vector<PeerLink> items;  // by worker
  std::optional<std::string> next_cursor;
};

// GET /v1/links/traffic at the coordinator: what the workers have said of their links, all asked at once.
struct LinkTraffic {
  std::string from;  // the worker that sends
  std::string to;
  std::string link;  // as PeerLink
  std::uint32_t connections = 0;
  std::optional<std::string> why_not_shm;
  std::uint64_t sent_bytes = 0;  // since the worker began
  double send_busy_seconds = 0;  // as PeerLink
};

struct LinkTrafficList {
  double at_s = 0;  // on the coordinator's monotonic clock: rates are differences between two answers
  std::vector<LinkTraffic> items;
  std::vector<std::string> silent;  // ready workers that did not answer in time
};

}  // namespace chorus::api
