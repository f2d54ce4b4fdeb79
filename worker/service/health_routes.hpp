// Who this is, whether it lives, whether it is ready, and what it counts.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "http/router.hpp"
#include "worker/devices/cuda/gpus.hpp"
#include "worker/service/identity.hpp"

namespace chorus::service {

// On the control thread; what the functions refer to outlives the server's stop().
class HealthRoutes {
 public:
  struct Sources {
    std::function<std::optional<std::string>()> unready;  // why not, or nothing
    std::function<std::string()> metrics;
  };

  HealthRoutes(Identity const& identity, devices::Gpus const& gpus, std::string version, Sources sources)
      : identity_(identity), gpus_(gpus), version_(std::move(version)), sources_(std::move(sources)) {}

  void add_to(http::Router& router);

 private:
  boost::asio::awaitable<http::Response> alive();
  boost::asio::awaitable<http::Response> ready();
  boost::asio::awaitable<http::Response> metrics();
  boost::asio::awaitable<http::Response> hello();
  boost::asio::awaitable<http::Response> about();

  Identity const& identity_;
  devices::Gpus const& gpus_;
  std::string const version_;
  Sources const sources_;
  http::Router const* router_ = nullptr;  // of add_to()
};

}  // namespace chorus::service
