// The data plane of one worker: a thread of its own that holds the links and runs the programs, so that a reduction of
// 64 MiB never delays a heartbeat or a health check.
//
// Knows no algorithms and no REST: callers pass programs and memory, and get the result of each run.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "collectives/core/result.hpp"
#include "http/message/message.hpp"
#include "worker/engine/failure/retired.hpp"
#include "worker/engine/messages/message.hpp"
#include "worker/engine/program/run_spec.hpp"
#include "worker/engine/trace/flight_recorder.hpp"
#include "worker/engine/trace/peer_traffic.hpp"
#include "worker/engine/transport/data_plane_options.hpp"
#include "worker/links/handshake.hpp"

namespace chorus::engine {

class Interruption;
class MessageGroup;
class RunKind;
struct RunCall;

class DataPlane {
 public:
  explicit DataPlane(DataPlaneOptions options);  // starts the thread
  ~DataPlane();                                  // aborts what runs, closes the links, joins the thread
  DataPlane(DataPlane const&) = delete;
  DataPlane& operator=(DataPlane const&) = delete;

  // Any thread. `done` is called exactly once, also when the run fails at once or the data plane is destroyed.
  void start(RunSpec spec, RunDone done);

  // Any thread but the data thread. Starts the next run of the kind and waits for its end. Meanwhile the calling thread
  // does the data thread's work for all runs and links, unless another caller already does. A run that is interrupted
  // before it begins never begins; to interrupt it later, also call abort(). The interruption, if not null, outlives
  // the call.
  [[nodiscard]] RunResult run(std::shared_ptr<RunKind> const& kind, RunCall const& call,
                              Interruption const* interruption = nullptr);

  // Any thread. Declares that this rank will not start the run: its members are told why, and those that wait for it
  // end. Only run, epoch, token and members of the spec are used, and the own rank.
  void give_up(RunSpec const& spec, plan::Rank rank, Error const& why);

  // Any thread. Ends the run on this rank with `why` and tells its peers; no effect if the run has ended. A run that
  // was not started here never will be: peers that have opened it, or open it later, are told.
  void abort(std::uint64_t run, Error why);

  // Any thread but the data thread. Sends a small message, or receives one that comes through shared memory within a
  // moment, and returns its bytes; the deadline does not count. Empty: nothing has happened, for whatever reason; then
  // run_messages() follows at once, which looks after what else is under way.
  [[nodiscard]] std::optional<std::uint64_t> run_at_once(MessageGroup& group, MessageRequest const& request);
  // Any thread but the data thread. Begins these messages and waits for the end of all of them; results[i] is that of
  // requests[i]. Sets their deadlines. Meanwhile the calling thread works as in run().
  void run_messages(std::shared_ptr<MessageGroup> const& group, std::span<MessageRequest> requests,
                    std::chrono::milliseconds timeout, std::span<MessageResult> results);
  // Any thread. Begins a message after all that this thread has begun before. `done` is called exactly once, also when
  // the data plane is destroyed.
  void begin_message(std::shared_ptr<MessageGroup> group, MessageRequest const& request, MessageDone done);
  // Any thread. Ends the messages of the group: those under way and all later ones fail with `why`.
  void close_messages(std::shared_ptr<MessageGroup> group, Error why);

  // Any thread. Answers a peer's GET /v1/link: 101, which moves the connection to this data plane, or a problem. The
  // data plane outlives the sending of the response.
  [[nodiscard]] http::Response welcome(links::Introduction const& peer);

  // Any thread. Closes links of older incarnations of this worker id, and refuses new ones.
  void fence(std::string const& worker, std::uint64_t incarnation);

  // Any thread. Retires an epoch of a group: its runs are refused from now on, those that wait here too.
  void retire(Retired epoch);

  // Any thread.
  [[nodiscard]] std::vector<PeerTraffic> traffic() const;
  [[nodiscard]] FlightRecorder* flights() const;

  // Any thread. Asks for the progress of all runs that are under way, or of the given one. `answer` is called once, on
  // the data thread or the thread that does its work, unless the data plane is destroyed before.
  void ask_progress(std::optional<std::uint64_t> run, std::function<void(std::vector<RunProgress>)> answer);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace chorus::engine
