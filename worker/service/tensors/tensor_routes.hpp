// GET, HEAD and DELETE of tensors, and their list. Bytes are sent without a copy.
#pragma once

#include "http/routing/router.hpp"
#include "worker/service/requests/helper.hpp"
#include "worker/service/requests/identity.hpp"
#include "worker/tensors/store.hpp"

namespace chorus::service {

// Used on the control thread only. Store, pool, helper and identity outlive the object, which outlives the server's
// stop().
class TensorRoutes {
 public:
  TensorRoutes(tensors::Store& store, tensors::Pool& pool, Helper& helper, Identity const& identity)
      : store_(store), pool_(pool), helper_(helper), identity_(identity) {}

  void add_to(http::Router& router);

 private:
  boost::asio::awaitable<http::Response> list(http::Request const& request);
  boost::asio::awaitable<http::Response> get(http::Request const& request);
  boost::asio::awaitable<http::Response> erase(http::Request const& request);

  tensors::Store& store_;
  tensors::Pool& pool_;
  Helper& helper_;
  Identity const& identity_;
};

}  // namespace chorus::service
