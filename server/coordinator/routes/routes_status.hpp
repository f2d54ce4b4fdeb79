// The routes that people look at: how everything stands, who sends how much to whom, a demonstration, and the page that
// shows it.
#pragma once

#include <functional>

#include "http/routing/once.hpp"
#include "http/routing/router.hpp"
#include "http/server/security.hpp"
#include "server/coordinator/cluster/survey.hpp"
#include "server/coordinator/diagnosis/verdict.hpp"
#include "server/coordinator/journal/journal.hpp"
#include "server/coordinator/observability/demo.hpp"
#include "server/coordinator/parameters/parameter_directory.hpp"

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
    http::Once& once;
    std::function<bool()> draining;
    std::string url;  // to which standbys send clients; "": there are none
  };
  explicit StatusRoutes(Parts parts);
  void add_to(http::Router& router);

 private:
  [[nodiscard]] Facts facts() const;
  [[nodiscard]] api::LeadStatus lead_status() const;
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
