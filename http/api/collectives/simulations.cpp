#include "http/api/collectives/simulations.hpp"

#include "http/api/described.hpp"

namespace chorus::api {

BOOST_DESCRIBE_STRUCT(SimulationRequest, (),
                      (ranks, topology, overrides, links, op, bytes, dtype, algorithm, root, arity, algorithm_shape,
                       reproducible, compression))
BOOST_DESCRIBE_STRUCT(SimulatedPlan, (),
                      (algorithm, root, arity, algorithm_shape, seconds, rounds, bytes_per_rank, wire_bytes,
                       bottleneck))
BOOST_DESCRIBE_STRUCT(SimulationAnswer, (), (op, ranks, bytes, topology, items, lower_bound, order, stretch))

constexpr auto required(SimulationAnswer const*) { return std::array<std::string_view, 1>{"items"}; }

}  // namespace chorus::api

CHORUS_HTTP_MESSAGE(chorus::api::SimulationRequest)
CHORUS_HTTP_MESSAGE(chorus::api::SimulationAnswer)
