// The groups of this worker: assigned by the coordinator, called by the worker's own clients.
#pragma once

#include "http/router.hpp"
#include "worker/service/group_book.hpp"

namespace chorus::service {

// On the control thread. The book outlives it, and it outlives the server's stop().
class GroupRoutes {
 public:
  explicit GroupRoutes(GroupBook& groups) : groups_(groups) {}

  void add_to(http::Router& router);

 private:
  boost::asio::awaitable<http::Response> list(http::Request const& request);
  boost::asio::awaitable<http::Response> get(http::Request const& request);
  boost::asio::awaitable<http::Response> put(http::Request const& request, http::Body& body);
  boost::asio::awaitable<http::Response> call(http::Request const& request, http::Body& body);

  GroupBook& groups_;
};

}  // namespace chorus::service
