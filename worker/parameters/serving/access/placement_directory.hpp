// A cache of the coordinator's placements, asked over HTTP.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <functional>
#include <map>
#include <string>

#include "http/client/client.hpp"
#include "worker/parameters/serving/access/placement.hpp"

namespace chorus::parameters {

// Used on one thread. The client outlives it.
class PlacementDirectory {
 public:
  PlacementDirectory(http::Client& client, std::string coordinator);

  // Tells the coordinator that a worker does not answer.
  boost::asio::awaitable<void> suspect(std::string worker, std::string incarnation, http::TimePoint deadline);
  // Tells the coordinator that a worker has lost this shard. False if the coordinator has not accepted the report.
  boost::asio::awaitable<bool> report_loss(std::string parameter, std::uint32_t shard, std::string worker,
                                           std::string incarnation, http::TimePoint deadline);

  // Returns the cached placement, or asks the coordinator. Problems: unknown_parameter and other problems of the
  // coordinator; unavailable if there is no coordinator, if it does not answer, or if none leads; parameter_lost.
  boost::asio::awaitable<http::Checked<PlacementPtr>> placement(std::string name, http::TimePoint deadline);
  // Always asks the coordinator. query: "" or "?suspect=...".
  boost::asio::awaitable<http::Checked<PlacementPtr>> fetch(std::string name, std::string query,
                                                            http::TimePoint deadline);
  // Makes the next placement() of this name ask the coordinator.
  void forget(std::string const& name) { known_.erase(name); }

 private:
  http::Client& client_;
  std::string coordinator_;
  std::map<std::string, PlacementPtr, std::less<>> known_;
};

}  // namespace chorus::parameters
