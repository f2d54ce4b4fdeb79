// Messages about probes: latency and bandwidth between two workers, measured by one of them over HTTP.
//
// POST /v1/probes with a ProbeRequest at a worker measures the path to another worker and answers with a ProbeReport.
// GET /v1/probe?bytes=N at the other worker answers with N bytes, at most 4 MiB. GET /v1/links at the coordinator lists
// the measurements at joins, or, with ?group=, the measurements between the members of a group.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace chorus::api {

struct ProbeRequest {
  std::string worker;  // id of the other worker
  std::string url;     // its address at the coordinator: no other address is called
};

struct ProbeReport {
  std::string url;
  double round_trip_s = 0;      // the shortest of several requests without a body
  double own_round_trip_s = 0;  // the same to the worker itself: the cost of HTTP without a network
  double bytes_per_s = 0;       // of answers of 256 KiB to 4 MiB that take about 0.1 s
};

struct MeasuredLink {
  std::string from;
  std::string to;
  std::string level;  // level of the pair: rack, zone, region, world; between members of a group also host
  double latency_s = 0;
  double bytes_per_s = 0;
};

struct MeasuredLinkList {
  std::vector<MeasuredLink> items;
  std::optional<std::string> next_cursor;
};

}  // namespace chorus::api
