// All requests of the coordinator to a worker.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <memory>
#include <string>

#include "collectives/core/result.hpp"
#include "http/api/cluster/links.hpp"
#include "http/api/cluster/probes.hpp"
#include "http/api/collectives/flight.hpp"
#include "http/api/collectives/groups.hpp"
#include "http/api/collectives/runs.hpp"
#include "http/api/parameters/parameters.hpp"
#include "http/api/tensors/tensors.hpp"
#include "http/client/client.hpp"
#include "http/message/trace_context.hpp"
#include "server/coordinator/journal/failpoint.hpp"
#include "server/coordinator/membership/epoch_message.hpp"

namespace chorus::coordinator {

// Used on the client's thread; any number of calls at once. The HTTP client outlives this and its calls.
// An Error means that the worker did not answer (HttpErrc). A Problem is the worker's answer.
class WorkerClient {
 public:
  template <class T>
  using Said = Result<http::Checked<T>>;

  WorkerClient(http::Client& client, Failpoint failpoint) : client_(client), failpoint_(std::move(failpoint)) {}

  // GET /livez: checks that a process answers at this address.
  boost::asio::awaitable<Status> probe(std::string url, http::TimePoint deadline);

  // POST /v1/probes: the worker at `url` measures its link to another worker.
  boost::asio::awaitable<Said<api::ProbeReport>> measure(std::string url, api::ProbeRequest to,
                                                         http::TimePoint deadline);

  // HEAD /v1/tensors/{tensor}; see read_tensor().
  boost::asio::awaitable<Result<http::Answer>> look_at_tensor(std::string url, std::string tensor,
                                                              http::TimePoint deadline);

  // PUT /v1/tensors/{tensor}: a one-dimensional tensor of i32.
  boost::asio::awaitable<Said<bool>> put_tensor(std::string url, std::string tensor,
                                                std::vector<std::int32_t> const& elements, http::TimePoint deadline);

  // GET /v1/links: the links that the worker has.
  boost::asio::awaitable<Said<api::PeerLinkList>> list_links(std::string url, http::TimePoint deadline);

  // GET /v1/tensors?prefix=...: the first names with this prefix, at most 100.
  boost::asio::awaitable<Said<api::TensorList>> list_tensors(std::string url, std::string prefix,
                                                             http::TimePoint deadline);

  // PUT /v1/runs/{run}: returns when the run has ended on that rank. `trace` is passed on.
  boost::asio::awaitable<Said<api::RunReport>> run(std::string url, api::RunRequest request,
                                                   std::optional<http::TraceContext> trace, http::TimePoint deadline);
  // POST /v1/runs/{run}/commit, repeated until the worker answers or the deadline; returns the new version.
  boost::asio::awaitable<Said<std::uint64_t>> commit(std::string url, std::uint64_t run, http::TimePoint deadline);
  // GET /v1/runs/{run}: the state of the run on this worker.
  boost::asio::awaitable<Said<api::RunStatus>> look_at_run(std::string url, std::uint64_t run,
                                                           http::TimePoint deadline);
  // GET /v1/runs/{run}/progress: the progress of the run on this worker.
  boost::asio::awaitable<Said<api::RunProgress>> look_at_progress(std::string url, std::uint64_t run,
                                                                  http::TimePoint deadline);
  // GET /v1/flight?run=
  boost::asio::awaitable<Said<api::FlightList>> flights_of(std::string url, std::uint64_t run,
                                                           http::TimePoint deadline);
  // GET /v1/clock
  boost::asio::awaitable<Said<api::ClockReading>> read_clock(std::string url, http::TimePoint deadline);
  // DELETE /v1/runs/{run}. Failures are ignored, because the coordinator cannot do anything about them.
  boost::asio::awaitable<void> abort(std::string url, std::uint64_t run, http::TimePoint deadline);

  // PUT /v1/groups/{name}
  boost::asio::awaitable<Said<bool>> assign(std::shared_ptr<EpochMessage const> message, api::Member to,
                                            http::TimePoint deadline);

  // PUT, GET and DELETE /v1/parameters/{name}/shards/{shard}
  boost::asio::awaitable<Said<bool>> assign_shard(std::string url, api::ShardAssignment assignment,
                                                  http::TimePoint deadline);
  // POST /v1/shards with assignments that are already JSON and outlive the call; returns an outcome for each.
  boost::asio::awaitable<Said<api::ShardAssignmentOutcomeList>> assign_shards(std::string url,
                                                                              std::vector<std::string_view> assignments,
                                                                              http::TimePoint deadline);
  boost::asio::awaitable<Said<api::ShardStatus>> look_at_shard(std::string url, std::string parameter,
                                                               std::uint32_t shard, http::TimePoint deadline);
  // GET /v1/parameters: one page of the worker's shards.
  boost::asio::awaitable<Said<api::ShardStatusList>> list_shards(std::string url, std::string cursor,
                                                                 http::TimePoint deadline);
  boost::asio::awaitable<Said<bool>> drop_shard(std::string url, std::string parameter, std::uint32_t shard,
                                                std::uint32_t epoch, http::TimePoint deadline);

  // GET /v1/checkpoints/{name}: the number of the newest good checkpoint
  boost::asio::awaitable<Said<std::uint64_t>> newest_checkpoint(std::string url, std::string name,
                                                                http::TimePoint deadline);
  // POST /v1/checkpoints/{name}/numbers, .../files, .../commit; DELETE .../files/{number}
  boost::asio::awaitable<Said<std::uint64_t>> next_checkpoint(std::string url, std::string name,
                                                              http::TimePoint deadline);
  // POST /v1/checkpoints/{name}/holds and .../images
  boost::asio::awaitable<Said<api::CheckpointPlaces>> hold_shards(std::string url, std::string name,
                                                                  api::CheckpointPlaces shards,
                                                                  http::TimePoint deadline);
  boost::asio::awaitable<Said<api::CheckpointPlaces>> take_images(std::string url, std::string name,
                                                                  api::CheckpointPlaces places,
                                                                  http::TimePoint deadline);
  boost::asio::awaitable<Said<std::string>> write_checkpoint(std::string url, std::string name,
                                                             api::CheckpointFile file, http::TimePoint deadline);
  boost::asio::awaitable<Said<bool>> discard_checkpoint(std::string url, std::string name, std::uint64_t number,
                                                        http::TimePoint deadline);
  boost::asio::awaitable<Said<bool>> commit_checkpoint(std::string url, std::string name, api::CheckpointCommit commit,
                                                       http::TimePoint deadline);

 private:
  // Reaches a failpoint, before each request and after its answer.
  void at(std::string_view point) const {
    if (failpoint_) failpoint_(point);
  }

  boost::asio::awaitable<Said<std::uint64_t>> number(http::Call call, http::TimePoint deadline);
  boost::asio::awaitable<Said<api::CheckpointPlaces>> say_places(std::string url, api::CheckpointPlaces places,
                                                                 http::TimePoint deadline);

  http::Client& client_;
  Failpoint const failpoint_;
};

// Encodes one segment of a path.
[[nodiscard]] std::string percent_encoded(std::string_view text);

}  // namespace chorus::coordinator
