// Measures the way to another worker, and lets others measure the way here.
#pragma once

#include "http/api/probes.hpp"
#include "http/client.hpp"
#include "http/router.hpp"
#include "worker/service/identity.hpp"

namespace chorus::service {

inline constexpr std::uint64_t max_probe_bytes = 4 << 20;

// On the control thread. Client and identity outlive the server's stop().
class ProbeRoutes {
 public:
  ProbeRoutes(http::Client& client, Identity const& identity) : client_(client), identity_(identity) {}

  void add_to(http::Router& router);

 private:
  boost::asio::awaitable<http::Response> answer(http::Request const& request);
  boost::asio::awaitable<http::Response> measure(http::Body& body);

  http::Client& client_;
  Identity const& identity_;
};

}  // namespace chorus::service
