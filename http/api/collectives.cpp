#include "http/api/collectives.hpp"

#include "http/api/described.hpp"

namespace chorus::api {

BOOST_DESCRIBE_STRUCT(CollectiveRequest, (),
                      (group, op, tensor, output, reduce, counts, local_algorithm, algorithm, root, arity,
                       algorithm_shape, epoch, timeout_ms, in_place, reproducible, schedule))
BOOST_DESCRIBE_STRUCT(Considered, (),
                      (algorithm, root, arity, algorithm_shape, predicted_seconds, rounds, bytes_per_rank))
BOOST_DESCRIBE_STRUCT(RankRecord, (), (rank, worker, parts, state, report))
BOOST_DESCRIBE_STRUCT(Collective, (),
                      (id, state, request, run, epoch, dtype, shape, bytes, algorithm, root, arity, algorithm_shape,
                       local_algorithm, reason, considered, predicted_seconds, lower_bound, created_at, seconds,
                       arrival_skew_seconds, ranks, error))
BOOST_DESCRIBE_STRUCT(CollectiveList, (), (items, next_cursor))
BOOST_DESCRIBE_STRUCT(PlanRequest, (),
                      (group, ranks, localities, op, bytes, dtype, algorithm, root, arity, algorithm_shape,
                       reproducible))
BOOST_DESCRIBE_STRUCT(PlannedMove, (), (op, rank, peer, chunk, chunks))
BOOST_DESCRIBE_STRUCT(PlanAnswer, (),
                      (algorithm, root, arity, algorithm_shape, reason, predicted_seconds, considered, lower_bound,
                       verified, verification, rounds))

constexpr auto required(CollectiveRequest const*) { return std::array<std::string_view, 1>{"group"}; }
constexpr auto required(Collective const*) { return std::array<std::string_view, 2>{"id", "state"}; }
constexpr auto required(CollectiveList const*) { return std::array<std::string_view, 1>{"items"}; }

}  // namespace chorus::api

CHORUS_HTTP_MESSAGE(chorus::api::CollectiveRequest)
CHORUS_HTTP_MESSAGE(chorus::api::Collective)
CHORUS_HTTP_MESSAGE(chorus::api::CollectiveList)
CHORUS_HTTP_MESSAGE(chorus::api::PlanRequest)
CHORUS_HTTP_MESSAGE(chorus::api::PlanAnswer)
