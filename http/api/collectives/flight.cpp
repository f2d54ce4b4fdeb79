#include "http/api/collectives/flight.hpp"

#include "http/api/described.hpp"

namespace chorus::api {

BOOST_DESCRIBE_STRUCT(FlightInstruction, (),
                      (instruction, instructions, round, op, peer, message, chunk, chunks, bytes, ready_us, moved_us,
                       done_us))
BOOST_DESCRIBE_STRUCT(FlightGpuWork, (), (lane, begin_us, end_us, bytes))
BOOST_DESCRIBE_STRUCT(Flight, (),
                      (run, group, epoch, op, algorithm, rank, ranks, tensor, dtype, elements, path, state, error,
                       trace_id, started_us, seconds, wait_seconds, bytes_sent, bytes_received, steps, instructions,
                       gpu))
BOOST_DESCRIBE_STRUCT(FlightList, (), (items, next_cursor, worker, now_us))
BOOST_DESCRIBE_STRUCT(ClockReading, (), (worker, incarnation, now_us))
BOOST_DESCRIBE_STRUCT(InstructionState, (), (instruction, op, peer, message, bytes_done, bytes))
BOOST_DESCRIBE_STRUCT(AwaitedRank, (), (rank, worker, where, suspicion, for_seconds))
BOOST_DESCRIBE_STRUCT(RunProgress, (),
                      (run, state, worker, group, epoch, description, rank, ranks, seconds, still_seconds, steps_done,
                       steps, bytes_sent, bytes_received, instructions, waiting_for))
BOOST_DESCRIBE_STRUCT(ProgressList, (), (items))

constexpr auto required(Flight const*) { return std::array<std::string_view, 2>{"run", "state"}; }
constexpr auto required(FlightList const*) { return std::array<std::string_view, 1>{"items"}; }
constexpr auto required(ClockReading const*) { return std::array<std::string_view, 1>{"now_us"}; }
constexpr auto required(RunProgress const*) { return std::array<std::string_view, 2>{"run", "state"}; }
constexpr auto required(ProgressList const*) { return std::array<std::string_view, 1>{"items"}; }

}  // namespace chorus::api

CHORUS_HTTP_MESSAGE(chorus::api::FlightList)
CHORUS_HTTP_MESSAGE(chorus::api::ClockReading)
CHORUS_HTTP_MESSAGE(chorus::api::RunProgress)
CHORUS_HTTP_MESSAGE(chorus::api::ProgressList)
