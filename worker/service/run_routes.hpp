// PUT, GET, commit and DELETE of /v1/runs/{run}: what the coordinator says to a worker about a collective.
#pragma once

#include "http/router.hpp"
#include "worker/service/group_book.hpp"
#include "worker/service/identity.hpp"
#include "worker/service/run_book.hpp"

namespace chorus::service {

// On the control thread. The books and the identity outlive it, and it outlives the server's stop().
class RunRoutes {
 public:
  RunRoutes(RunBook& runs, GroupBook& groups, Identity const& identity)
      : runs_(runs), groups_(groups), identity_(identity) {}

  void add_to(http::Router& router);

 private:
  boost::asio::awaitable<http::Response> put(http::Request const& request, http::Body& body);
  boost::asio::awaitable<http::Response> get(http::Request const& request);
  boost::asio::awaitable<http::Response> commit(http::Request const& request);
  boost::asio::awaitable<http::Response> erase(http::Request const& request);

  RunBook& runs_;
  GroupBook& groups_;
  Identity const& identity_;
};

}  // namespace chorus::service
