// Messages about links of workers and their traffic. GET /v1/links at a worker: its links to all peers so far.
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
  std::optional<std::string> why_not_shm;  // if shared memory was tried and is not used
  std::optional<std::string> why_not_ipc;  // if GPU memory was lent and is not read in place
  std::uint64_t sent_bytes = 0;            // through the link, without what GPUs read in place
  std::uint64_t received_bytes = 0;
  double send_busy_seconds = 0;  // time with data queued to the peer: bytes per busy second are the link's speed
};

struct PeerLinkList {
  std::vector<PeerLink> items;  // by worker
  std::optional<std::string> next_cursor;
};

// GET /v1/links/traffic at the coordinator: the answers of all workers about their links, asked at one time.
struct LinkTraffic {
  std::string from;  // the sending worker
  std::string to;
  std::string link;  // as in PeerLink
  std::uint32_t connections = 0;
  std::optional<std::string> why_not_shm;
  std::uint64_t sent_bytes = 0;  // since the worker began
  double send_busy_seconds = 0;  // as in PeerLink
};

struct LinkTrafficList {
  double at_s = 0;  // on the coordinator's monotonic clock, for rates between two answers
  std::vector<LinkTraffic> items;
  std::vector<std::string> silent;  // ready workers that did not answer in time
};

}  // namespace chorus::api
