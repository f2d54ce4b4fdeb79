#include "http/api/parameters/parameters.hpp"

#include "http/api/described.hpp"
#include "http/api/parameters/push_log.hpp"

namespace chorus::api {

BOOST_DESCRIBE_STRUCT(ParameterList, (), (items, next_cursor))
BOOST_DESCRIBE_STRUCT(ShardPeer, (), (worker, incarnation, url))
BOOST_DESCRIBE_STRUCT(ShardAssignment, (),
                      (parameter, shard, begin, end, epoch, role, worker, incarnation, fresh, continues, checkpoint,
                       recover, term, backups))
BOOST_DESCRIBE_STRUCT(ShardAssignmentList, (), (items))
BOOST_DESCRIBE_STRUCT(ShardAssignmentOutcome, (), (error))
BOOST_DESCRIBE_STRUCT(ShardAssignmentOutcomeList, (), (items))
BOOST_DESCRIBE_STRUCT(ShardStatus, (),
                      (parameter, shard, begin, end, epoch, role, complete, version, position, backups_complete, clocks,
                       rows, unconfirmed))
BOOST_DESCRIBE_STRUCT(ShardStatusList, (), (items, next_cursor))
BOOST_DESCRIBE_STRUCT(ShardClient, (), (name, incarnation, next_sequence))
BOOST_DESCRIBE_STRUCT(ShardClock, (), (client, clocks_done))
BOOST_DESCRIBE_STRUCT(ShardHeld, (), (client, sequence, dtype, rows))
BOOST_DESCRIBE_STRUCT(ShardState, (), (version, position, steps, clients, clocks, held, rows))
BOOST_DESCRIBE_STRUCT(LoggedPush, (), (kind, client, incarnation, sequence, clock, dtype, rows, norm_bits, clients))
BOOST_DESCRIBE_STRUCT(LogArray, (), (name, bytes))
BOOST_DESCRIBE_STRUCT(LogBase, (), (parameter, begin, end, dtype, state, arrays))
BOOST_DESCRIBE_STRUCT(CheckpointRequest, (), (name, parameters, keep))
BOOST_DESCRIBE_STRUCT(CheckpointAnswer, (), (name, number, parameters, files, seconds, unaligned))
BOOST_DESCRIBE_STRUCT(CheckpointNumber, (), (number))
BOOST_DESCRIBE_STRUCT(CheckpointShard, (), (parameter, shard))
BOOST_DESCRIBE_STRUCT(CheckpointFile, (), (number, shards))
BOOST_DESCRIBE_STRUCT(CheckpointPlace, (), (parameter, shard, clients))
BOOST_DESCRIBE_STRUCT(CheckpointPlaces, (), (number, timeout_ms, items))
BOOST_DESCRIBE_STRUCT(CheckpointPart, (), (manifest))
BOOST_DESCRIBE_STRUCT(CheckpointCommit, (), (number, keep, parts))
BOOST_DESCRIBE_STRUCT(HandOverAnswer, (), (shards_left))
BOOST_DESCRIBE_STRUCT(PushAnswer, (), (version, epoch, next_sequence, duplicate))

constexpr auto required(CheckpointRequest const*) { return std::array<std::string_view, 1>{"name"}; }
constexpr auto required(CheckpointShard const*) { return std::array<std::string_view, 2>{"parameter", "shard"}; }
constexpr auto required(ParameterList const*) { return std::array<std::string_view, 1>{"items"}; }
constexpr auto required(ShardPeer const*) { return std::array<std::string_view, 3>{"worker", "incarnation", "url"}; }
constexpr auto required(ShardAssignment const*) {
  return std::array<std::string_view, 8>{"parameter", "shard", "begin",  "end",
                                         "epoch",     "role",  "worker", "incarnation"};
}
constexpr auto required(ShardAssignmentList const*) { return std::array<std::string_view, 1>{"items"}; }
constexpr auto required(ShardAssignmentOutcomeList const*) { return std::array<std::string_view, 1>{"items"}; }
constexpr auto required(CheckpointPlace const*) { return std::array<std::string_view, 2>{"parameter", "shard"}; }
constexpr auto required(CheckpointPlaces const*) { return std::array<std::string_view, 2>{"number", "items"}; }
constexpr auto required(ShardStatus const*) { return std::array<std::string_view, 2>{"role", "complete"}; }
constexpr auto required(ShardStatusList const*) { return std::array<std::string_view, 1>{"items"}; }
constexpr auto required(ShardState const*) { return std::array<std::string_view, 2>{"version", "position"}; }
constexpr auto required(LoggedPush const*) { return std::array<std::string_view, 2>{"kind", "dtype"}; }
constexpr auto required(LogArray const*) { return std::array<std::string_view, 2>{"name", "bytes"}; }
constexpr auto required(LogBase const*) {
  return std::array<std::string_view, 6>{"parameter", "begin", "end", "dtype", "state", "arrays"};
}
constexpr auto required(HandOverAnswer const*) { return std::array<std::string_view, 1>{"shards_left"}; }
constexpr auto required(PushAnswer const*) { return std::array<std::string_view, 1>{"version"}; }

bool is_parameter_name(std::string_view name) {
  constexpr std::string_view allowed = "._~/-";
  if (name.empty() || name.size() > 255) return false;
  for (char const c : name)
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
          allowed.find(c) != std::string_view::npos))
      return false;
  for (std::size_t begin = 0; begin <= name.size();) {
    auto const end = std::min(name.find('/', begin), name.size());
    auto const part = name.substr(begin, end - begin);
    if (part.empty() || part == "." || part == "..") return false;
    begin = end + 1;
  }
  return true;
}

std::string parameter_path(std::string_view name) {
  std::string path = "/v1/parameters/";
  for (char const c : name) c == '/' ? path += "%2F" : path += c;
  return path;
}

}  // namespace chorus::api

CHORUS_HTTP_MESSAGE(chorus::api::ParameterRequest)
CHORUS_HTTP_MESSAGE(chorus::api::Parameter)
CHORUS_HTTP_MESSAGE(chorus::api::ParameterList)
CHORUS_HTTP_MESSAGE(chorus::api::ShardAssignment)
CHORUS_HTTP_MESSAGE(chorus::api::ShardAssignmentList)
CHORUS_HTTP_MESSAGE(chorus::api::ShardAssignmentOutcomeList)
CHORUS_HTTP_MESSAGE(chorus::api::CheckpointPlaces)
CHORUS_HTTP_MESSAGE(chorus::api::ShardStatus)
CHORUS_HTTP_MESSAGE(chorus::api::ShardStatusList)
CHORUS_HTTP_MESSAGE(chorus::api::ShardState)
CHORUS_HTTP_MESSAGE(chorus::api::LoggedPush)
CHORUS_HTTP_MESSAGE(chorus::api::LogBase)
CHORUS_HTTP_MESSAGE(chorus::api::CheckpointRequest)
CHORUS_HTTP_MESSAGE(chorus::api::CheckpointAnswer)
CHORUS_HTTP_MESSAGE(chorus::api::CheckpointNumber)
CHORUS_HTTP_MESSAGE(chorus::api::CheckpointFile)
CHORUS_HTTP_MESSAGE(chorus::api::CheckpointPart)
CHORUS_HTTP_MESSAGE(chorus::api::CheckpointCommit)
CHORUS_HTTP_MESSAGE(chorus::api::HandOverAnswer)
CHORUS_HTTP_MESSAGE(chorus::api::PushAnswer)
