// Messages about workers and their leases, between worker, coordinator and clients.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/core/gpu_locality.hpp"
#include "collectives/core/locality.hpp"

namespace chorus::api {

// Text form of 64-bit identities, 16 hexadecimal digits: JSON numbers are exact only up to 2^53.
[[nodiscard]] std::string to_hex(std::uint64_t value);
[[nodiscard]] std::optional<std::uint64_t> from_hex(std::string_view text);

// POST /v1/workers
struct JoinRequest {
  std::string id;           // [A-Za-z0-9._-]{1,64}; the same name with a new incarnation fences the old one
  std::string incarnation;  // hex, drawn at process start
  std::string url;          // address of this worker for peers and the coordinator
  Locality locality;
  std::string version;            // of the build
  std::vector<GpuLocality> gpus;  // GPUs that may hold its tensors
  // How often the coordinator has told this process that its lease is over. The process owns its shards again after an
  // assignment of the present term. Absent from workers of earlier releases, which get no term.
  std::optional<std::uint64_t> term;
};

// An element of GET /v1/workers, the answer of GET /v1/workers/{id}, and the answer to a join.
struct Worker {
  std::string id;
  std::string incarnation;
  std::string url;
  Locality locality;
  std::string version;
  std::string state;           // "ready" or "lost"
  std::uint32_t lease_ms = 0;  // length of the lease: renew well before its end
  std::uint64_t heard_ms_ago = 0;
  std::vector<std::string> groups;
  std::vector<GpuLocality> gpus;
  std::uint32_t takeovers = 0;      // in the last minute: processes that took the name from a running one
  std::vector<std::string> rivals;  // URLs of these processes, with the present holder of the name
};

// So many takeovers show that rivals contend for the name. A single one may be a restart before the old process ended.
inline constexpr std::uint32_t takeovers_of_a_contest = 3;

// A culprit of a failed members' call.
struct Accused {
  std::string worker;
  std::string incarnation;
};
// A members' call that has failed since the last renewal.
struct Trouble {
  std::string group;
  std::uint32_t epoch = 0;
  std::vector<Accused> accused;  // members that this member has lost
};
// A member's account of members' calls of operations without a root: their number since the epoch began, and the sum
// of their durations on this member.
struct GroupCalls {
  std::string group;
  std::uint32_t epoch = 0;
  std::uint64_t calls = 0;
  double seconds = 0;
};
// PUT /v1/workers/{id}/lease. 404 unknown_worker: join again. 409 epoch_fenced: a newer incarnation has the name.
struct LeaseRequest {
  std::string incarnation;
  std::vector<Trouble> troubles;
  std::vector<GroupCalls> calls;  // of groups with calls since the last renewal
  // Length of the lease by which the worker renews: the last that it was told, which may differ from the flag of a
  // restarted coordinator. Absent in former releases.
  std::optional<std::uint32_t> lease_ms;
};
// The answer of POST /v1/workers/{id}/probe at the coordinator, which calls the address that the worker gave.
struct Reachability {
  std::string worker;
  std::string url;
  bool reachable = false;
  double seconds = 0;
  std::optional<std::string> detail;  // why not
};
struct LeaseAnswer {
  std::uint32_t lease_ms = 0;
};

struct WorkerList {
  std::vector<Worker> items;
  std::optional<std::string> next_cursor;
};

}  // namespace chorus::api
