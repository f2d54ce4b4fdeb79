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
  std::uint64_t sent_bytes = 0;
  std::uint64_t received_bytes = 0;
};

struct PeerLinkList {
  std::vector<PeerLink> items;  // by worker
  std::optional<std::string> next_cursor;
};

}  // namespace chorus::api
