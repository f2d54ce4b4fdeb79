// How the coordinator stands, in one answer: GET /v1/status. What the status page and `chorus status` begin with.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace chorus::api {

// One thing that is not as it should be, and what it is about; of the names those that apply.
struct VerdictReason {
  std::string level;  // "amber": it works, with less than was asked for; "red": something cannot be done
  std::string text;   // one sentence, without a full stop at the end
  std::optional<std::string> worker;
  std::optional<std::string> group;
  std::optional<std::string> collective;
  std::optional<std::string> parameter;
};

struct Verdict {
  std::string level;                   // the worst of its reasons', "green" without any
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

// What keeps the coordinator's state.
struct StoreStatus {
  std::string kind;                    // "sqlite", "etcd"; "none": a restart forgets everything
  std::string place;                   // the file; endpoints of etcd, with commas
  std::optional<std::string> cluster;  // its name in etcd
  std::uint64_t bytes = 0;             // 0: not known; in etcd of everything that it keeps
  std::optional<double> last_write_s;  // how long the last transaction took
  std::optional<std::string> failure;  // why nothing can be written
};

// The coordinator that answers: the only one, or the one that leads.
struct LeadStatus {
  std::optional<std::string> url;  // to which standbys send clients; absent: the coordinator is the only one
  std::string since;               // RFC 3339: began to serve, or to lead
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
  std::uint64_t ready = 0;  // of them
  std::uint64_t groups = 0;
  std::uint64_t degraded = 0;  // of them
  std::uint64_t running = 0;   // collectives
  bool draining = false;
  bool journal = false;  // what is launched survives a restart
  bool traces = false;   // GET /v1/collectives/{id}/trace is served
  std::vector<Setting> settings;
  std::optional<LeadStatus> coordinator;  // absent in answers of former releases
};

// POST /v1/demo: every member gets a tensor of so many i32 under "chorus.demo", and an all_reduce of it is launched.
struct DemoRequest {
  std::optional<std::string> group;  // none: the group "demo", made of all ready workers where it is not ready
  std::uint64_t elements = 262144;   // 1 to 4 Mi
};

}  // namespace chorus::api
