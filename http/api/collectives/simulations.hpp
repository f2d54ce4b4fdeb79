// Messages about simulations: plans in virtual time, on topologies that need not exist.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "http/api/collectives/collectives.hpp"

namespace chorus::api {

// POST /v1/simulations
struct SimulationRequest {
  std::optional<std::uint32_t>
      ranks;  // must agree with the topology; without one: each rank on its own host, in one rack
  std::optional<std::string> topology;   // "racks:2x4x8;rack=25us,25Gbit/s", see collectives/topology/shape_spec.hpp
  std::optional<std::string> overrides;  // other costs of links: "rack=25us,25Gbit/s;uplink_rack=100Gbit/s"
  std::optional<LinkMatrix> links;       // order the ranks; alone: every worker has its own host
  std::string op = "all_reduce";
  std::uint64_t bytes = 0;  // of the whole vector: of the concatenated one in all_gather, gather, scatter and the like
  std::string dtype = "f32";
  std::string algorithm = "auto";     // a name, or "auto" or "all": every algorithm that has the operation
  std::optional<std::uint32_t> root;  // with links: the worker of this row
  std::optional<std::uint32_t> arity;
  std::optional<std::vector<std::uint32_t>> algorithm_shape;
  bool reproducible = false;
  std::optional<Compression> compression;  // of a format that is named, not auto
};

struct SimulatedPlan {
  std::string algorithm;
  std::uint32_t root = 0;
  std::uint32_t arity = 2;
  std::vector<std::uint32_t> algorithm_shape;  // empty: the algorithm's own choice
  double seconds = 0;
  std::uint32_t rounds = 0;
  std::uint64_t bytes_per_rank = 0;         // sent by the busiest rank
  std::optional<std::uint64_t> wire_bytes;  // size of the vector's codes; none: the plan sends elements
  std::string bottleneck;                   // "nic of host h1 (receive)", "port of rank 0 (send)", "latency", ...
};

struct SimulationAnswer {
  std::string op;
  std::uint32_t ranks = 0;
  std::uint64_t bytes = 0;
  std::string topology;              // with the overrides
  std::vector<SimulatedPlan> items;  // the fastest first; one per algorithm, with its best arity and shape
  LowerBound lower_bound;
  std::optional<std::vector<std::uint32_t>> order;  // as in PlanAnswer
  std::optional<Stretch> stretch;
};

}  // namespace chorus::api
