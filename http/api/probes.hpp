// Probes: how far two workers are from each other, as one of them measures it over HTTP.
//
// POST /v1/probes with a ProbeRequest at a worker measures the way to another one and answers with a ProbeReport;
// GET /v1/probe?bytes=N at that other one answers with so many bytes, at most 4 MiB. GET /v1/links at the coordinator
// lists what was measured when workers joined, and with ?group= what its members measured of each other.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace chorus::api {

struct ProbeRequest {
  std::string worker;  // the other one's id
  std::string url;     // its address, as the coordinator knows it: no other is called
};

struct ProbeReport {
  std::string url;
  double round_trip_s = 0;      // the shortest of several requests without a body
  double own_round_trip_s = 0;  // the same to the worker itself: what HTTP takes without a network
  double bytes_per_s = 0;       // of answers that took 0.1 s, of 256 KiB to 4 MiB
};

struct MeasuredLink {
  std::string from;
  std::string to;
  std::string level;  // that both share: rack, zone, region, world; of members of a group also host
  double latency_s = 0;
  double bytes_per_s = 0;
};

struct MeasuredLinkList {
  std::vector<MeasuredLink> items;
  std::optional<std::string> next_cursor;
};

}  // namespace chorus::api
