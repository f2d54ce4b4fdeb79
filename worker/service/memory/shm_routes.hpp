// PUT, GET and DELETE of /v1/shm/system/{name} and /v1/shm/cuda/{name}, and their lists.
#pragma once

#include "http/routing/router.hpp"
#include "worker/service/memory/client_memory.hpp"

namespace chorus::service {

// Used on the control thread only. The memory outlives the object, which outlives the server's stop().
class ShmRoutes {
 public:
  explicit ShmRoutes(ClientMemory& memory) : memory_(memory) {}

  void add_to(http::Router& router);

 private:
  boost::asio::awaitable<http::Response> list(http::Request const& request);
  boost::asio::awaitable<http::Response> get(http::Request const& request);
  boost::asio::awaitable<http::Response> erase(http::Request const& request);
  boost::asio::awaitable<http::Response> list_on_gpus(http::Request const& request);
  boost::asio::awaitable<http::Response> get_on_gpu(http::Request const& request);
  boost::asio::awaitable<http::Response> erase_on_gpu(http::Request const& request);
  template <class Asked>
  boost::asio::awaitable<http::Response> put(http::Request const& request, http::Body& body);

  ClientMemory& memory_;
};

}  // namespace chorus::service
