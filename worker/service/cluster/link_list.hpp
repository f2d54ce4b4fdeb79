// GET /v1/links: the links of this worker to its peers, with the reason for each link without shared memory.
#pragma once

#include "http/routing/router.hpp"
#include "worker/engine/data_plane.hpp"

namespace chorus::service {

// Used on the control thread only. The data plane outlives the server's stop().
class LinkList {
 public:
  explicit LinkList(engine::DataPlane const& plane) : plane_(plane) {}

  void add_to(http::Router& router);

 private:
  boost::asio::awaitable<http::Response> list();

  engine::DataPlane const& plane_;
};

}  // namespace chorus::service
