// The flight recorder: what the last 1024 runs of this worker were and how they ended, for GET /v1/flight.
#pragma once

#include <cstdint>
#include <deque>
#include <string>

#include "http/router.hpp"

namespace chorus::service {

struct Flight {
  std::uint64_t run = 0;
  std::string group;
  std::uint32_t epoch = 0;
  std::string op;
  std::string algorithm;
  std::uint32_t rank = 0;
  std::uint32_t ranks = 0;
  std::string tensor;
  std::string dtype;
  std::uint64_t elements = 0;
  std::string state;             // succeeded, failed, cancelled
  std::string error;             // code and detail, "" when it succeeded
  std::uint64_t started_us = 0;  // monotonic clock of this worker
  double seconds = 0;
  double wait_seconds = 0;
  std::uint64_t bytes_sent = 0;
  std::uint64_t bytes_received = 0;
  std::uint32_t steps = 0;
};

// On the control thread; outlives the server's stop().
class FlightRecorder {
 public:
  static constexpr std::size_t capacity = 1024;

  void add(Flight flight);
  void add_to(http::Router& router);

  // {"items":[...]}, the latest first, at most `last`.
  [[nodiscard]] std::string to_json(std::size_t last) const;

 private:
  boost::asio::awaitable<http::Response> list(http::Request const& request);

  std::deque<Flight> flights_;
};

}  // namespace chorus::service
