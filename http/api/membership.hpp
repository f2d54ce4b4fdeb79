// Workers and their leases, as they travel between worker, coordinator and users.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/core/gpu_locality.hpp"
#include "collectives/core/locality.hpp"

namespace chorus::api {

// 64-bit values that are identities, not quantities, travel as 16 hexadecimal digits: JSON numbers end at 2^53.
[[nodiscard]] std::string to_hex(std::uint64_t value);
[[nodiscard]] std::optional<std::uint64_t> from_hex(std::string_view text);

// POST /v1/workers
struct JoinRequest {
  std::string id;           // [A-Za-z0-9._-]{1,64}; the same name with a new incarnation fences the old one
  std::string incarnation;  // hex, drawn at process start
  std::string url;          // where peers and the coordinator reach this worker
  Locality locality;
  std::string version;            // of the build
  std::vector<GpuLocality> gpus;  // on which it may have tensors
  // How often this process has been told that its lease is over. What it owned it owns again when it is told so under
  // the present term. Absent from workers of earlier releases, which are told no term.
  std::optional<std::uint64_t> term;
};

// An element of GET /v1/workers, GET /v1/workers/{id}, and the answer to a join
struct Worker {
  std::string id;
  std::string incarnation;
  std::string url;
  Locality locality;
  std::string version;
  std::string state;           // "ready" or "lost"
  std::uint32_t lease_ms = 0;  // renew well before this has passed
  std::uint64_t heard_ms_ago = 0;
  std::vector<std::string> groups;
  std::vector<GpuLocality> gpus;
  std::uint32_t takeovers = 0;      // within the last minute: a process took the name from one that still ran
  std::vector<std::string> rivals;  // URLs of those processes, the one that has the name among them
};

// Once may be a process that is started anew before its predecessor has ended.
inline constexpr std::uint32_t takeovers_of_a_contest = 3;

// PUT /v1/workers/{id}/lease. 404 unknown_worker: join again. 409 epoch_fenced: a newer incarnation has the name.
// `troubles`: calls between members that have failed since the last renewal.
struct Accused {
  std::string worker;
  std::string incarnation;
};
struct Trouble {
  std::string group;
  std::uint32_t epoch = 0;
  std::vector<Accused> accused;  // whom this member has lost
};
// What a member has seen of the operations without a root that the members of a group did without the coordinator: how
// many since the epoch began, and how long they took it together.
struct GroupCalls {
  std::string group;
  std::uint32_t epoch = 0;
  std::uint64_t calls = 0;
  double seconds = 0;
};
struct LeaseRequest {
  std::string incarnation;
  std::vector<Trouble> troubles;
  std::vector<GroupCalls> calls;  // of groups in which there were some since the last renewal
  // The lease that the worker lives by: it renews at the pace of what it was told last, which a coordinator that was
  // started with another length has to know. Absent in former releases.
  std::optional<std::uint32_t> lease_ms;
};
// POST /v1/workers/{id}/probe at the coordinator: does anybody answer at the address that the worker gave?
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
