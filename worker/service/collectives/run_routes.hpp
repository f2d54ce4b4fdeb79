// PUT, GET, commit and DELETE of /v1/runs/{run}: requests of the coordinator about collectives.
#pragma once

#include "http/routing/router.hpp"
#include "worker/service/collectives/groups/group_registry.hpp"
#include "worker/service/collectives/runs/run_registry.hpp"
#include "worker/service/requests/identity.hpp"

namespace chorus::service {

// Used on the control thread only. Registries and identity outlive the object, which outlives the server's stop().
class RunRoutes {
 public:
  RunRoutes(RunRegistry& runs, GroupRegistry& groups, Identity const& identity)
      : runs_(runs), groups_(groups), identity_(identity) {}

  void add_to(http::Router& router);

 private:
  boost::asio::awaitable<http::Response> put(http::Request const& request, http::Body& body);
  boost::asio::awaitable<http::Response> get(http::Request const& request);
  boost::asio::awaitable<http::Response> commit(http::Request const& request);
  boost::asio::awaitable<http::Response> erase(http::Request const& request);

  RunRegistry& runs_;
  GroupRegistry& groups_;
  Identity const& identity_;
};

}  // namespace chorus::service
