// Measures the path to another worker, and answers measurements of others.
#pragma once

#include "http/api/cluster/probes.hpp"
#include "http/client/client.hpp"
#include "http/routing/router.hpp"
#include "worker/service/requests/identity.hpp"

namespace chorus::service {

inline constexpr std::uint64_t max_probe_bytes = 4 << 20;

// Connects only to workers that the coordinator knows: otherwise a client could make this worker call any address that
// it reaches. Used on the control thread only. Client and identity outlive the server's stop().
class ProbeRoutes {
 public:
  // coordinator: its URL; "" if there is none, and then nothing is measured.
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
