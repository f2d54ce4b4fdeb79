// GET /v1/link: accepts a peer's data connection on the worker's port and hands it to the data plane.
//
// Any process that may join may open a link; without authentication, any process that reaches the port. A link alone
// gives no access: every run on it presents the run's token, which only the coordinator and the run's members know, and
// links of fenced incarnations are refused.
#pragma once

#include "http/routing/router.hpp"
#include "worker/engine/data_plane.hpp"
#include "worker/service/requests/identity.hpp"

namespace chorus::service {

// Used on the control thread only. Data plane and identity outlive the object, which outlives the server's stop().
class LinkRoute {
 public:
  LinkRoute(engine::DataPlane& plane, Identity const& identity) : plane_(plane), identity_(identity) {}

  void add_to(http::Router& router);

 private:
  boost::asio::awaitable<http::Response> upgrade(http::Request const& request);

  engine::DataPlane& plane_;
  Identity const& identity_;
};

}  // namespace chorus::service
