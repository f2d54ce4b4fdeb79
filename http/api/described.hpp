// Descriptions for http/json of all structs that messages of several files contain.
#pragma once

#include "collectives/core/gpu_locality.hpp"
#include "collectives/core/locality.hpp"
#include "http/api/cluster/events.hpp"
#include "http/api/cluster/link_matrix.hpp"
#include "http/api/cluster/membership.hpp"
#include "http/api/collectives/collectives.hpp"
#include "http/api/collectives/groups.hpp"
#include "http/api/collectives/runs.hpp"
#include "http/api/parameters/optimizers.hpp"
#include "http/api/parameters/parameters.hpp"
#include "http/api/tensors/client_memory.hpp"
#include "http/json/codec.hpp"

namespace chorus {

BOOST_DESCRIBE_STRUCT(Locality, (), (region, zone, rack, host))
BOOST_DESCRIBE_STRUCT(Nvlinks, (), (to, is_switch, links, gbyte_per_s))
BOOST_DESCRIBE_STRUCT(GpuLocality, (),
                      (uuid, pci_address, name, memory_gbyte_per_s, pcie_generation, pcie_width, nvlinks))

constexpr auto required(Nvlinks const*) { return std::array<std::string_view, 3>{"to", "links", "gbyte_per_s"}; }
constexpr auto required(GpuLocality const*) { return std::array<std::string_view, 2>{"uuid", "pci_address"}; }

namespace api {

BOOST_DESCRIBE_STRUCT(Schedule, (), (segment_bytes, window))
BOOST_DESCRIBE_STRUCT(Compression, (), (format, between, allow))
BOOST_DESCRIBE_STRUCT(Place, (), (region, offset))
BOOST_DESCRIBE_STRUCT(LowerBound, (), (rounds, bytes_per_rank))
BOOST_DESCRIBE_STRUCT(LinkMatrix, (), (bandwidth_gbyte_per_s, latency_us))
BOOST_DESCRIBE_STRUCT(OptimizerSettings, (),
                      (name, learning_rate, momentum, beta1, beta2, epsilon, initial_accumulator, weight_decay,
                       clip_norm, clip_value))
BOOST_DESCRIBE_STRUCT(InitializerSettings, (), (name, value, low, high, mean, deviation, seed))
BOOST_DESCRIBE_STRUCT(CheckpointName, (), (name, number))
BOOST_DESCRIBE_STRUCT(ParameterRequest, (),
                      (dtype, shape, group, optimizer, initializer, staleness, reduce, replicas, nonfinite, shards,
                       clients, checkpoint, lazy_rows, durability, device, recreate))
BOOST_DESCRIBE_STRUCT(ParameterEndpoint, (), (shard, elements, role, worker, incarnation, url, epoch, state))
BOOST_DESCRIBE_STRUCT(Parameter, (),
                      (name, dtype, shape, group, optimizer, initializer, staleness, reduce, replicas, nonfinite,
                       clients, lazy_rows, durability, device, bytes, epoch, uid, why, state, endpoints))
BOOST_DESCRIBE_STRUCT(RunReport, (),
                      (run, rank, worker, state, started_us, seconds, wait_seconds, bytes_sent, bytes_received, steps,
                       input_digest, output_digest, version, error))
BOOST_DESCRIBE_STRUCT(JoinRequest, (), (id, incarnation, url, locality, version, gpus, term))
BOOST_DESCRIBE_STRUCT(RoleInAlgorithm, (), (algorithm, role, sends_to, receives_from))
BOOST_DESCRIBE_STRUCT(Member, (), (rank, worker, incarnation, url, locality, roles, since_epoch))
BOOST_DESCRIBE_STRUCT(Selection, (), (op, max_bytes, algorithm, root, arity, algorithm_shape, reason))
BOOST_DESCRIBE_STRUCT(CompressionSelection, (), (op, between, element_bytes, max_bytes, formats, reason))
BOOST_DESCRIBE_STRUCT(Stretch, (), (arrival_order, assigned))
BOOST_DESCRIBE_STRUCT(GroupRequest, (), (workers, size, on_failure, min_ranks, order))
BOOST_DESCRIBE_STRUCT(SlowMember, (), (rank, worker, late_seconds, share))
BOOST_DESCRIBE_STRUCT(Group, (),
                      (name, epoch, state, members, lost, requested, order, by_position, stretch, selection,
                       compression, segment_bytes, slow, next_sequence))
BOOST_DESCRIBE_STRUCT(CollectiveRequest, (),
                      (group, op, tensor, output, reduce, counts, local_algorithm, algorithm, root, arity,
                       algorithm_shape, epoch, timeout_ms, in_place, on_failure, reproducible, compression,
                       error_feedback, schedule))
BOOST_DESCRIBE_STRUCT(Attempt, (), (run, epoch, error))
BOOST_DESCRIBE_STRUCT(Considered, (),
                      (algorithm, root, arity, algorithm_shape, predicted_seconds, rounds, bytes_per_rank))
BOOST_DESCRIBE_STRUCT(ConsideredFormat, (), (format, algorithm, predicted_seconds, wire_bytes))
BOOST_DESCRIBE_STRUCT(RankRecord, (), (rank, worker, parts, device, state, late_seconds, report))
BOOST_DESCRIBE_STRUCT(StalledRank, (), (rank, worker, state, instruction, peer, for_s))
BOOST_DESCRIBE_STRUCT(Stall, (), (since, for_s, waiting_for, ranks, text))
BOOST_DESCRIBE_STRUCT(Collective, (),
                      (id, state, request, run, epoch, dtype, shape, bytes, timeout_ms, algorithm, root, arity,
                       algorithm_shape, local_algorithm, wire_format, wire_bytes, compression_ratio, reason, considered,
                       considered_formats, predicted_seconds, lower_bound, created_at, seconds, arrival_skew_seconds,
                       ranks, attempts, stalled, traceparent, error))
BOOST_DESCRIBE_STRUCT(Event, (), (sequence, type, at, worker, incarnation, group, epoch, collective, run, code, detail))

constexpr auto required(LinkMatrix const*) {
  return std::array<std::string_view, 2>{"bandwidth_gbyte_per_s", "latency_us"};
}
constexpr auto required(Compression const*) { return std::array<std::string_view, 1>{"format"}; }
constexpr bool may_be_text(Compression const*) { return true; }
constexpr auto required(Place const*) { return std::array<std::string_view, 1>{"region"}; }
constexpr auto required(OptimizerSettings const*) { return std::array<std::string_view, 1>{"name"}; }
constexpr auto required(InitializerSettings const*) { return std::array<std::string_view, 1>{"name"}; }
constexpr auto required(RunReport const*) { return std::array<std::string_view, 3>{"run", "rank", "state"}; }
constexpr auto required(JoinRequest const*) { return std::array<std::string_view, 3>{"id", "incarnation", "url"}; }
constexpr auto required(CheckpointName const*) { return std::array<std::string_view, 1>{"name"}; }
constexpr auto required(ParameterRequest const*) { return std::array<std::string_view, 2>{"shape", "group"}; }
constexpr auto required(ParameterEndpoint const*) {
  return std::array<std::string_view, 4>{"shard", "elements", "role", "url"};
}
constexpr auto required(Parameter const*) { return std::array<std::string_view, 3>{"name", "dtype", "shape"}; }
constexpr auto required(Member const*) { return std::array<std::string_view, 2>{"rank", "worker"}; }
constexpr auto required(Selection const*) { return std::array<std::string_view, 2>{"op", "algorithm"}; }
constexpr auto required(CompressionSelection const*) { return std::array<std::string_view, 2>{"op", "formats"}; }
constexpr auto required(Group const*) { return std::array<std::string_view, 3>{"name", "epoch", "members"}; }
constexpr auto required(CollectiveRequest const*) { return std::array<std::string_view, 1>{"group"}; }
constexpr auto required(Collective const*) { return std::array<std::string_view, 2>{"id", "state"}; }
constexpr auto required(Event const*) { return std::array<std::string_view, 2>{"sequence", "type"}; }

}  // namespace api
}  // namespace chorus
