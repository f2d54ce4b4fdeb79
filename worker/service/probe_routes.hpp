// Measures the way to another worker, and lets others measure the way here.
#pragma once

#include "http/api/probes.hpp"
#include "http/client.hpp"
#include "http/router.hpp"
#include "worker/service/identity.hpp"

namespace chorus::service {

inline constexpr std::uint64_t max_probe_bytes = 4 << 20;

// Calls only the addresses of workers that the coordinator knows: whoever may ask for a measurement could otherwise
// have this worker call anything that it reaches. On the control thread. Client and identity outlive the server's
// stop().
class ProbeRoutes {
 public:
  // coordinator: its URL; "" for none, and then nothing is measured.
  ProbeRoutes(http::Client& client, Identity const& identity, std::string coordinator)
      : client_(client), identity_(identity), coordinator_(std::move(coordinator)) {}

  void add_to(http::Router& router);

 private:
  boost::asio::awaitable<http::Response> answer(http::Request const& request);
  boost::asio::awaitable<http::Response> measure(http::Body& body);
  boost::asio::awaitable<std::optional<http::Problem>> check_known(api::ProbeRequest asked, http::TimePoint deadline);

  http::Client& client_;
  Identity const& identity_;
  std::string const coordinator_;
};

}  // namespace chorus::service
