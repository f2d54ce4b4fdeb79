// Messages of the flight recorder and of progress: a worker's last runs, and the state of its present ones.
//
// GET /v1/flight, GET /v1/progress, GET /v1/runs/{run}/progress and GET /v1/clock at a worker;
// docs/guides/diagnosis.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace chorus::api {

// Times are microseconds since the run began on this rank; none: the run ended earlier.
struct FlightInstruction {
  std::uint32_t instruction = 0;  // number in the rank's program; of several the first
  std::uint32_t instructions = 1;
  std::uint32_t round = 0;
  std::string op;  // send, recv, recv_reduce, copy, reduce; "several"
  std::optional<std::uint32_t> peer;
  std::optional<std::uint32_t> message;  // number among the messages of this direction to the peer, from 0
  std::uint32_t chunk = 0;
  std::uint32_t chunks = 0;
  std::uint64_t bytes = 0;
  std::optional<double> ready_us;  // all its dependencies are fulfilled
  std::optional<double> moved_us;  // its first bytes have moved
  std::optional<double> done_us;
};

// A time in which a GPU's copy engine or kernels worked for the run.
struct FlightGpuWork {
  std::string lane;  // in (to the device), compute, out (from it)
  double begin_us = 0;
  double end_us = 0;
  std::uint64_t bytes = 0;
};

struct Flight {
  std::string run;  // hexadecimal
  std::string group;
  std::uint32_t epoch = 0;
  std::string op;
  std::string algorithm;
  std::uint32_t rank = 0;
  std::uint32_t ranks = 0;
  std::string tensor;  // "" if a program passed memory
  std::string dtype;
  std::uint64_t elements = 0;
  std::string path;   // links, or shm
  std::string state;  // succeeded, failed, cancelled
  std::string error;  // "" when it succeeded
  std::optional<std::string> trace_id;
  double started_us = 0;  // monotonic clock of the worker, as in FlightList::now_us
  double seconds = 0;
  double wait_seconds = 0;
  std::uint64_t bytes_sent = 0;
  std::uint64_t bytes_received = 0;
  std::uint32_t steps = 0;  // instructions completed
  std::optional<std::vector<FlightInstruction>> instructions;
  std::optional<std::vector<FlightGpuWork>> gpu;  // only with the instructions, and only of runs that used a GPU
};

struct FlightList {
  std::vector<Flight> items;  // the latest first
  std::optional<std::string> next_cursor;
  std::string worker;
  double now_us = 0;
};

struct ClockReading {
  std::string worker;
  std::string incarnation;
  double now_us = 0;
};

struct InstructionState {
  std::uint32_t instruction = 0;
  std::string op;
  std::optional<std::uint32_t> peer;
  std::optional<std::uint32_t> message;
  std::uint64_t bytes_done = 0;
  std::uint64_t bytes = 0;
};

struct AwaitedRank {
  std::uint32_t rank = 0;
  std::string worker;
  std::string where;
  std::string suspicion;  // nobody (the rank may be busy), slow, not_called, silent
  double for_seconds = 0;
};

struct RunProgress {
  std::string run;  // hexadecimal
  // running; of the coordinator's runs also busy (the worker prepares or finishes the run) and states of RunStatus
  std::string state;
  std::string worker;
  std::string group;
  std::uint32_t epoch = 0;
  std::string description;
  std::uint32_t rank = 0;
  std::uint32_t ranks = 0;
  double seconds = 0;
  double still_seconds = 0;  // time since the last byte moved
  std::uint32_t steps_done = 0;
  std::uint32_t steps = 0;
  std::uint64_t bytes_sent = 0;
  std::uint64_t bytes_received = 0;
  std::vector<InstructionState> instructions;  // the first of those under way
  std::vector<AwaitedRank> waiting_for;
};

struct ProgressList {
  std::vector<RunProgress> items;
};

}  // namespace chorus::api
