// What a worker remembers of its last runs, and where those stand that are under way.
//
// GET /v1/flight, GET /v1/progress, GET /v1/runs/{run}/progress and GET /v1/clock at a worker;
// docs/guides/diagnosis.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace chorus::api {

// Times are microseconds since the run began on this rank; none: it did not come to that.
struct FlightInstruction {
  std::uint32_t instruction = 0;  // number in the rank's program, of several the first
  std::uint32_t instructions = 1;
  std::uint32_t round = 0;
  std::string op;  // send, recv, recv_reduce, copy, reduce; "several"
  std::optional<std::uint32_t> peer;
  std::optional<std::uint32_t> message;  // the n-th in this direction between the two, from 0
  std::uint32_t chunk = 0;
  std::uint32_t chunks = 0;
  std::uint64_t bytes = 0;
  std::optional<double> ready_us;  // nothing that it depends on held it back any more
  std::optional<double> moved_us;  // its first bytes had moved
  std::optional<double> done_us;
};

// When a GPU's copy engine or kernels were at work for the run.
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
  std::string tensor;  // "" where a program passed memory
  std::string dtype;
  std::uint64_t elements = 0;
  std::string path;   // links, or shm
  std::string state;  // succeeded, failed, cancelled
  std::string error;  // "" when it succeeded
  std::optional<std::string> trace_id;
  double started_us = 0;  // monotonic clock of the worker, as `now_us` of the list
  double seconds = 0;
  double wait_seconds = 0;
  std::uint64_t bytes_sent = 0;
  std::uint64_t bytes_received = 0;
  std::uint32_t steps = 0;  // instructions completed
  std::optional<std::vector<FlightInstruction>> instructions;
  std::optional<std::vector<FlightGpuWork>> gpu;  // with the instructions, where there is one
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
  std::string suspicion;  // nobody (it may be busy), slow, not_called, silent
  double for_seconds = 0;
};

struct RunProgress {
  std::string run;    // hexadecimal
  std::string state;  // running; of one that the coordinator launched also busy (it is prepared or finished), held, ...
  std::string worker;
  std::string group;
  std::uint32_t epoch = 0;
  std::string description;
  std::uint32_t rank = 0;
  std::uint32_t ranks = 0;
  double seconds = 0;
  double still_seconds = 0;  // since a byte moved last
  std::uint32_t steps_done = 0;
  std::uint32_t steps = 0;
  std::uint64_t bytes_sent = 0;
  std::uint64_t bytes_received = 0;
  std::vector<InstructionState> instructions;  // under way: the first of them
  std::vector<AwaitedRank> waiting_for;
};

struct ProgressList {
  std::vector<RunProgress> items;
};

}  // namespace chorus::api
