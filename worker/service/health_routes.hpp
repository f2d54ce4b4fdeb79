// Identity, liveness, readiness and metrics of the worker.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "http/routing/router.hpp"
#include "metrics/build/build.hpp"
#include "worker/devices/cuda/gpus.hpp"
#include "worker/service/requests/identity.hpp"

namespace chorus::service {

// Used on the control thread only. The functions remain callable until after the server's stop().
class HealthRoutes {
 public:
  struct Sources {
    std::function<std::optional<std::string>()> unready;    // the reason; empty if ready
    std::function<std::optional<std::string>()> complaint;  // of a worker that is ready nevertheless
    std::function<std::string()> metrics;
  };

  HealthRoutes(Identity const& identity, devices::Gpus const& gpus, metrics::Build build, Sources sources)
      : identity_(identity), gpus_(gpus), build_(std::move(build)), sources_(std::move(sources)) {}

  void add_to(http::Router& router);

 private:
  boost::asio::awaitable<http::Response> alive();
  boost::asio::awaitable<http::Response> ready();
  boost::asio::awaitable<http::Response> metrics();
  boost::asio::awaitable<http::Response> hello();
  boost::asio::awaitable<http::Response> about();

  Identity const& identity_;
  devices::Gpus const& gpus_;
  metrics::Build const build_;
  Sources const sources_;
  http::Router const* router_ = nullptr;  // of add_to()
};

}  // namespace chorus::service
