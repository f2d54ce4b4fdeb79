// Requests of the coordinator to workers while a checkpoint is made.
#pragma once

#include "http/routing/router.hpp"
#include "worker/service/parameters/shards/checkpoint_store.hpp"
#include "worker/service/requests/identity.hpp"

namespace chorus::service {

// Used on the control thread only. The arguments outlive the object, which outlives the server's stop().
class CheckpointRoutes {
 public:
  CheckpointRoutes(CheckpointStore& store, Identity const& identity) : store_(store), identity_(identity) {}

  void add_to(http::Router& router);

 private:
  boost::asio::awaitable<http::Response> next_number(http::Request const& request);
  boost::asio::awaitable<http::Response> newest(http::Request const& request);
  boost::asio::awaitable<http::Response> hold(http::Request const& request, http::Body& body);
  boost::asio::awaitable<http::Response> keep_images(http::Request const& request, http::Body& body);
  boost::asio::awaitable<http::Response> write(http::Request const& request, http::Body& body);
  boost::asio::awaitable<http::Response> discard(http::Request const& request);
  boost::asio::awaitable<http::Response> commit(http::Request const& request, http::Body& body);

  CheckpointStore& store_;
  Identity const& identity_;
};

}  // namespace chorus::service
