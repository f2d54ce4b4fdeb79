// Plans in virtual time, on topologies that need not exist.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "http/api/collectives.hpp"

namespace chorus::api {

// POST /v1/simulations
struct SimulationRequest {
  std::optional<std::uint32_t> ranks;    // as many as the topology has; without one: hosts of one worker in one rack
  std::optional<std::string> topology;   // "racks:2x4x8;rack=25us,25Gbit/s", see collectives/topology/shape_spec.hpp
  std::optional<std::string> overrides;  // more of the same: "rack=25us,25Gbit/s;uplink_rack=100Gbit/s"
  std::optional<LinkMatrix> links;       // ranks are then ordered by them; alone: hosts of one worker
  std::string op = "all_reduce";
  std::uint64_t bytes = 0;  // of the whole vector: the concatenated one for all_gather, gather, scatter and the like
  std::string dtype = "f32";
  std::string algorithm = "auto";     // by name; auto, all: every one that can do the operation
  std::optional<std::uint32_t> root;  // with links: the worker of this row
  std::optional<std::uint32_t> arity;
  std::optional<std::vector<std::uint32_t>> algorithm_shape;
  bool reproducible = false;
};

struct SimulatedPlan {
  std::string algorithm;
  std::uint32_t root = 0;
  std::uint32_t arity = 2;
  std::vector<std::uint32_t> algorithm_shape;  // empty: the algorithm's own choice
  double seconds = 0;
  std::uint32_t rounds = 0;
  std::uint64_t bytes_per_rank = 0;  // sent by the busiest rank
  std::string bottleneck;            // "nic of host h1 (receive)", "port of rank 0 (send)", "latency", ...
};

struct SimulationAnswer {
  std::string op;
  std::uint32_t ranks = 0;
  std::uint64_t bytes = 0;
  std::string topology;              // with its overrides
  std::vector<SimulatedPlan> items;  // the fastest first; of each algorithm the best of its arities and shapes
  LowerBound lower_bound;
  std::optional<std::vector<std::uint32_t>> order;  // as PlanAnswer
  std::optional<Stretch> stretch;
};

}  // namespace chorus::api
