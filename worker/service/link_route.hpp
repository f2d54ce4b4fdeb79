// GET /v1/link: a peer's data connection comes in through the worker's one port and goes over to the data plane.
//
// Whoever may join may open a link, and without authentication whoever reaches the port; but a link alone gives
// nothing: every run on it presents the run's token, which only the coordinator and the run's members know, and links
// of fenced incarnations are refused.
#pragma once

#include "http/router.hpp"
#include "worker/engine/data_plane.hpp"
#include "worker/service/identity.hpp"

namespace chorus::service {

// On the control thread. Data plane and identity outlive it, and it outlives the server's stop().
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
