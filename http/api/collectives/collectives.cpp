#include "http/api/collectives/collectives.hpp"

#include "http/api/described.hpp"

namespace chorus::api {

BOOST_DESCRIBE_STRUCT(CollectiveList, (), (items, next_cursor))
BOOST_DESCRIBE_STRUCT(PlanRequest, (),
                      (group, ranks, localities, topology, links, op, bytes, dtype, algorithm, root, arity,
                       algorithm_shape, reproducible, compression))
BOOST_DESCRIBE_STRUCT(PlannedMove, (), (op, rank, peer, chunk, chunks))
BOOST_DESCRIBE_STRUCT(PlanAnswer, (),
                      (algorithm, root, arity, algorithm_shape, reason, predicted_seconds, considered,
                       considered_formats, lower_bound, wire_format, wire_bytes, compression_ratio, verified,
                       verification, rounds, order, stretch))

constexpr auto required(CollectiveList const*) { return std::array<std::string_view, 1>{"items"}; }

}  // namespace chorus::api

CHORUS_HTTP_MESSAGE(chorus::api::CollectiveRequest)
CHORUS_HTTP_MESSAGE(chorus::api::Collective)
CHORUS_HTTP_MESSAGE(chorus::api::CollectiveList)
CHORUS_HTTP_MESSAGE(chorus::api::PlanRequest)
CHORUS_HTTP_MESSAGE(chorus::api::PlanAnswer)
