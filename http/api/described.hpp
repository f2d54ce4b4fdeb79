// The structs that messages of several files contain.
#pragma once

#include "collectives/core/locality.hpp"
#include "http/api/client_memory.hpp"
#include "http/api/collectives.hpp"
#include "http/api/optimizers.hpp"
#include "http/api/runs.hpp"
#include "http/codec.hpp"

namespace chorus {

BOOST_DESCRIBE_STRUCT(Locality, (), (region, zone, rack, host))

namespace api {

BOOST_DESCRIBE_STRUCT(Schedule, (), (segment_bytes, window))
BOOST_DESCRIBE_STRUCT(Place, (), (region, offset))
BOOST_DESCRIBE_STRUCT(LowerBound, (), (rounds, bytes_per_rank))
BOOST_DESCRIBE_STRUCT(OptimizerSettings, (),
                      (name, learning_rate, momentum, beta1, beta2, epsilon, initial_accumulator, weight_decay,
                       clip_norm, clip_value))
BOOST_DESCRIBE_STRUCT(InitializerSettings, (), (name, value, low, high, mean, deviation, seed))
BOOST_DESCRIBE_STRUCT(RunReport, (),
                      (run, rank, worker, state, started_us, seconds, wait_seconds, bytes_sent, bytes_received, steps,
                       input_digest, output_digest, version, error))

constexpr auto required(Place const*) { return std::array<std::string_view, 1>{"region"}; }
constexpr auto required(OptimizerSettings const*) { return std::array<std::string_view, 1>{"name"}; }
constexpr auto required(InitializerSettings const*) { return std::array<std::string_view, 1>{"name"}; }
constexpr auto required(RunReport const*) { return std::array<std::string_view, 3>{"run", "rank", "state"}; }

}  // namespace api
}  // namespace chorus
