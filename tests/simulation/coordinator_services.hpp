// The service in a coordinator's process: a coordinator with a journal in a file, or one of several on etcd.
#pragma once

#include <spdlog/logger.h>

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "server/coordinator/coordinator.hpp"
#include "tests/simulation/machine.hpp"

namespace chorus::simulation {

// Owned by a Process of Life; runs on its host's executor.
class CoordinatorService {
 public:
  CoordinatorService() = default;
  virtual ~CoordinatorService() = default;  // call after stop()
  CoordinatorService(CoordinatorService const&) = delete;
  CoordinatorService& operator=(CoordinatorService const&) = delete;

  // Ends the service of a killed process, which can reach no other host.
  virtual boost::asio::awaitable<void> stop(TimePoint until) = 0;
  // Does what SIGTERM does; the process ends afterwards.
  virtual boost::asio::awaitable<void> hand_over(TimePoint until) = 0;
};

struct CoordinatorOf {
  Host& host;
  std::uint16_t port = 0;
  coordinator::Random random;
  std::shared_ptr<spdlog::logger> log;
};

// Call both inside Machine::run_as(). Errors: as Coordinator::start() and Leading::start().
Result<std::unique_ptr<CoordinatorService>> start_with_journal(CoordinatorOf process, std::string const& path);
// `ended` is called when the service ends its process by itself.
Result<std::unique_ptr<CoordinatorService>> start_with_etcd(CoordinatorOf process, std::vector<std::string> endpoints,
                                                            std::function<void()> ended);

}  // namespace chorus::simulation
