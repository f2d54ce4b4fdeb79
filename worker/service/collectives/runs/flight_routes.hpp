// GET /v1/flight, /v1/progress, /v1/runs/{run}/progress and /v1/clock: past runs of this worker, and the progress of
// current ones.
#pragma once

#include <optional>

#include "base/logging/log.hpp"
#include "http/api/collectives/flight.hpp"
#include "http/routing/router.hpp"
#include "worker/engine/data_plane.hpp"
#include "worker/engine/trace/flight_recorder.hpp"
#include "worker/service/collectives/runs/run_registry.hpp"
#include "worker/service/requests/identity.hpp"

namespace chorus::service {

// Text of a stall for the log: "run 7 stands still for 2.0 s: waits for rank 2 (w2), receiving message ..."
[[nodiscard]] std::string describe_stall(engine::RunProgress const& run);

// Log field of a run: its number if the coordinator launched it, 16 hexadecimal digits for a members' call.
[[nodiscard]] logging::Field run_field(std::uint64_t run);

// Used on the control thread only. The arguments outlive the server's stop().
class FlightRoutes {
 public:
  FlightRoutes(boost::asio::any_io_executor control, engine::DataPlane& plane, engine::FlightRecorder const& recorder,
               RunRegistry const& runs, Identity const& identity)
      : control_(std::move(control)), plane_(plane), recorder_(recorder), runs_(runs), identity_(identity) {}

  void add_to(http::Router& router);

 private:
  boost::asio::awaitable<http::Response> flight(http::Request const& request);
  boost::asio::awaitable<http::Response> all_progress();
  boost::asio::awaitable<http::Response> one_progress(http::Request const& request);
  boost::asio::awaitable<http::Response> clock();
  boost::asio::awaitable<std::vector<engine::RunProgress>> ask(std::optional<std::uint64_t> run);
  [[nodiscard]] api::RunProgress to_message(engine::RunProgress const& run) const;

  boost::asio::any_io_executor control_;
  engine::DataPlane& plane_;
  engine::FlightRecorder const& recorder_;
  RunRegistry const& runs_;
  Identity const& identity_;
};

}  // namespace chorus::service
