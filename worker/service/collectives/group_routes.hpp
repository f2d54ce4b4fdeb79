// Routes of this worker's groups: assignments by the coordinator, calls by the worker's clients.
#pragma once

#include "http/routing/router.hpp"
#include "worker/service/collectives/groups/group_registry.hpp"

namespace chorus::service {

// Used on the control thread only. The registry outlives the object, which outlives the server's stop().
class GroupRoutes {
 public:
  explicit GroupRoutes(GroupRegistry& groups) : groups_(groups) {}

  void add_to(http::Router& router);

 private:
  boost::asio::awaitable<http::Response> list(http::Request const& request);
  boost::asio::awaitable<http::Response> get(http::Request const& request);
  boost::asio::awaitable<http::Response> put(http::Request const& request, http::Body& body);
  boost::asio::awaitable<http::Response> call(http::Request const& request, http::Body& body);

  GroupRegistry& groups_;
};

}  // namespace chorus::service
