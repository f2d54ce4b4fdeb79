// GET /v1/links: how this worker reaches its peers, and why not through shared memory where that is so.
#pragma once

#include "http/router.hpp"
#include "worker/engine/data_plane.hpp"

namespace chorus::service {

// On the control thread. The data plane outlives the server's stop().
class LinkList {
 public:
  explicit LinkList(engine::DataPlane const& plane) : plane_(plane) {}

  void add_to(http::Router& router);

 private:
  boost::asio::awaitable<http::Response> list();

  engine::DataPlane const& plane_;
};

}  // namespace chorus::service
