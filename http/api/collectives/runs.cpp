#include "http/api/collectives/runs.hpp"

#include "http/api/described.hpp"

namespace chorus::api {

BOOST_DESCRIBE_STRUCT(Peer, (), (rank, worker, incarnation, url))
BOOST_DESCRIBE_STRUCT(RunResult, (), (tensor, shape, version))
BOOST_DESCRIBE_STRUCT(RunRequest, (),
                      (run, group, epoch, token, op, algorithm, root, arity, algorithm_shape, by_position, rank,
                       members, by_worker, tensor, version, dtype, elements, counts, receive_counts, result, parts,
                       local_algorithm, contributions, reduce, compression, error_feedback, in_place, digests, schedule,
                       timeout_ms))
BOOST_DESCRIBE_STRUCT(RunStatus, (), (run, state, report))
BOOST_DESCRIBE_STRUCT(CommitAnswer, (), (version))
BOOST_DESCRIBE_STRUCT(LocalCall, (),
                      (sequence, epoch, tensor, tensors, output, dtype, shape, root, counts, receive_counts, reduce,
                       compression, error_feedback, in_place, algorithm, local_algorithm, contributions, timeout_ms,
                       schedule))
BOOST_DESCRIBE_STRUCT(LocalReport, (),
                      (group, epoch, sequence, next_sequence, rank, algorithm, wire_format, seconds, bytes_sent,
                       bytes_received, version, tensors))

constexpr auto required(Peer const*) { return std::array<std::string_view, 4>{"rank", "worker", "incarnation", "url"}; }
constexpr auto required(RunResult const*) { return std::array<std::string_view, 2>{"tensor", "shape"}; }
constexpr auto required(RunRequest const*) {
  return std::array<std::string_view, 13>{"run",     "group",  "epoch",   "token", "op",       "algorithm", "rank",
                                          "members", "tensor", "version", "dtype", "elements", "reduce"};
}
constexpr auto required(RunStatus const*) { return std::array<std::string_view, 2>{"run", "state"}; }
constexpr auto required(CommitAnswer const*) { return std::array<std::string_view, 1>{"version"}; }
constexpr auto required(LocalReport const*) { return std::array<std::string_view, 2>{"group", "rank"}; }

}  // namespace chorus::api

CHORUS_HTTP_MESSAGE(chorus::api::RunRequest)
CHORUS_HTTP_MESSAGE(chorus::api::RunReport)
CHORUS_HTTP_MESSAGE(chorus::api::RunStatus)
CHORUS_HTTP_MESSAGE(chorus::api::CommitAnswer)
CHORUS_HTTP_MESSAGE(chorus::api::LocalCall)
CHORUS_HTTP_MESSAGE(chorus::api::LocalReport)
