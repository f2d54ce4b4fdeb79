// State of the coordinator in one answer, GET /v1/status: the status page and `chorus status` begin with it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace chorus::api {

// One defect of the cluster, with the names of the objects concerned; the other names are absent.
struct VerdictReason {
  std::string level;  // "amber": the cluster works, with less than requested; "red": some requests fail
  std::string text;   // one sentence, without a full stop at the end
  std::optional<std::string> worker;
  std::optional<std::string> group;
  std::optional<std::string> collective;
  std::optional<std::string> parameter;
};

struct Verdict {
  std::string level;                   // the worst level of its reasons; "green" without reasons
  std::string text;                    // one sentence: "7 of 8 workers ready; waiting for w3, last heard 4.0 s ago"
  std::vector<VerdictReason> reasons;  // the worst first
};

// A flag of the coordinator, from the command line or the environment.
struct Setting {
  std::string name;  // "lease-ms"
  std::string value;
  std::string default_value;
  bool is_default = true;
  std::string help;
};

// The store of the coordinator's rows.
struct StoreStatus {
  std::string kind;                    // "sqlite", "etcd"; "none": a restart forgets everything
  std::string place;                   // the file, or the endpoints of etcd, separated by commas
  std::optional<std::string> cluster;  // name of the cluster in etcd
  std::uint64_t bytes = 0;             // 0: unknown; of etcd: size of its whole database
  std::optional<double> last_write_s;  // duration of the last transaction
  std::optional<std::string> failure;  // why writes fail
};

// The coordinator that answers: the only one, or the leader.
struct LeadStatus {
  std::optional<std::string> url;  // address to which standbys redirect clients; absent: it is the only coordinator
  std::string since;               // RFC 3339: start of its service, or of its leadership
  StoreStatus store;
};

struct CoordinatorStatus {
  Verdict verdict;
  std::string version;
  std::string started_at;  // RFC 3339, for people
  double uptime_s = 0;
  std::uint64_t last_event = 0;  // follow GET /v1/events from here
  std::uint32_t lease_ms = 0;
  std::uint64_t workers = 0;
  std::uint64_t ready = 0;  // of these workers
  std::uint64_t groups = 0;
  std::uint64_t degraded = 0;  // of these groups
  std::uint64_t running = 0;   // collectives
  bool draining = false;
  bool journal = false;  // collectives survive a restart
  bool traces = false;   // GET /v1/collectives/{id}/trace is served
  std::vector<Setting> settings;
  std::optional<LeadStatus> coordinator;  // absent in answers of former releases
};

// POST /v1/demo: gives every member a tensor "chorus.demo" of `elements` i32, and launches an all_reduce of it.
struct DemoRequest {
  std::optional<std::string> group;  // none: the group "demo", which is made of all ready workers unless it is ready
  std::uint64_t elements = 262144;   // 1 to 4 Mi
};

}  // namespace chorus::api
