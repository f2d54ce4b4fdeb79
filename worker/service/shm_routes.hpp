// PUT, GET and DELETE of /v1/shm/system/{name}, and their list.
#pragma once

#include "http/router.hpp"
#include "worker/service/client_memory.hpp"

namespace chorus::service {

// On the control thread. The memory outlives it, and it outlives the server's stop().
class ShmRoutes {
 public:
  explicit ShmRoutes(ClientMemory& memory) : memory_(memory) {}

  void add_to(http::Router& router);

 private:
  boost::asio::awaitable<http::Response> list(http::Request const& request);
  boost::asio::awaitable<http::Response> get(http::Request const& request);
  boost::asio::awaitable<http::Response> put(http::Request const& request, http::Body& body);
  boost::asio::awaitable<http::Response> erase(http::Request const& request);

  ClientMemory& memory_;
};

}  // namespace chorus::service
