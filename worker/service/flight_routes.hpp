// GET /v1/flight, /v1/progress, /v1/runs/{run}/progress and /v1/clock: what this worker has run, and where it stands.
#pragma once

#include <optional>

#include "http/api/flight.hpp"
#include "http/logging/log.hpp"
#include "http/router.hpp"
#include "worker/engine/data_plane.hpp"
#include "worker/engine/flight_recorder.hpp"
#include "worker/service/identity.hpp"
#include "worker/service/run_book.hpp"

namespace chorus::service {

// Of a stall, as the log tells it: "run 7 stands still for 2.0 s: waits for rank 2 (w2), receiving message ..."
[[nodiscard]] std::string describe_stall(engine::RunProgress const& run);

// In logs: the number of a run that the coordinator launched, 16 hexadecimal digits of a call between members.
[[nodiscard]] logging::Field run_field(std::uint64_t run);

// On the control thread. Everything outlives the server's stop().
class FlightRoutes {
 public:
  FlightRoutes(boost::asio::any_io_executor control, engine::DataPlane& plane, engine::FlightRecorder const& recorder,
               RunBook const& runs, Identity const& identity)
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
  RunBook const& runs_;
  Identity const& identity_;
};

}  // namespace chorus::service
