// The routes that people look at: how everything stands, who sends how much to whom, a demonstration, and the page that
// shows it.
#pragma once

#include <functional>

#include "http/auth/security.hpp"
#include "http/router.hpp"
#include "server/coordinator/demo.hpp"
#include "server/coordinator/journal.hpp"
#include "server/coordinator/parameter_directory.hpp"
#include "server/coordinator/survey.hpp"
#include "server/coordinator/verdict.hpp"

namespace chorus::coordinator {

// Everything referred to outlives the server's stop(), as do the routes themselves.
class StatusRoutes {
 public:
  struct Parts {
    Cluster& cluster;
    Collectives& collectives;
    ParameterDirectory& parameters;
    Survey& survey;
    Demo& demo;
    Events const& events;
    Journal const& journal;
    http::Security const& security;
    std::vector<api::Setting> settings;
    std::function<bool()> draining;
  };
  explicit StatusRoutes(Parts parts);
  void add_to(http::Router& router);

 private:
  [[nodiscard]] Facts facts() const;
  [[nodiscard]] api::CoordinatorStatus status_of(Facts const& facts) const;
  boost::asio::awaitable<http::Response> page(http::Request const& request, http::Body& body);
  boost::asio::awaitable<http::Response> status(http::Request const& request, http::Body& body);
  boost::asio::awaitable<http::Response> traffic(http::Request const& request, http::Body& body);
  boost::asio::awaitable<http::Response> shards(http::Request const& request, http::Body& body);
  boost::asio::awaitable<http::Response> launch(http::Request const& request, http::Body& body);

  Parts parts_;
  http::Router const* router_ = nullptr;  // all routes, once they are added
  http::TimePoint const begun_;
  std::string const started_at_;
};

}  // namespace chorus::coordinator
