// The REST interface: reads requests, calls the services, shows their results. Has no state of its own.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <functional>

#include "http/json/json.hpp"
#include "http/routing/once.hpp"
#include "http/routing/router.hpp"
#include "http/server/security.hpp"
#include "server/coordinator/admission/planner.hpp"
#include "server/coordinator/cluster/cluster.hpp"
#include "server/coordinator/collectives/collectives.hpp"
#include "server/coordinator/membership/lease_connections.hpp"
#include "server/coordinator/parameters/checkpoints.hpp"
#include "server/coordinator/parameters/parameter_directory.hpp"

namespace chorus::coordinator {

// All referenced objects outlive the server's stop(), as do the routes.
//
// Checks a report that only the worker itself may make: if the caller has shown a certificate, it must be valid for the
// URL that the worker advertises. Nothing is returned for an unknown worker.
[[nodiscard]] std::optional<http::Problem> check_is_own(Cluster const& cluster, std::string_view id,
                                                        http::Caller const& caller);

class WorkerRoutes {
 public:
  WorkerRoutes(Cluster& cluster, LeaseConnections& connections) : cluster_(cluster), connections_(connections) {}
  void add_to(http::Router& router);

 private:
  boost::asio::awaitable<http::Response> links(http::Request const& request, http::Body& body);
  boost::asio::awaitable<http::Response> list(http::Request const& request, http::Body& body);
  boost::asio::awaitable<http::Response> join(http::Request const& request, http::Body& body);
  boost::asio::awaitable<http::Response> get(http::Request const& request, http::Body& body);
  boost::asio::awaitable<http::Response> leave(http::Request const& request, http::Body& body);
  boost::asio::awaitable<http::Response> probe(http::Request const& request, http::Body& body);
  boost::asio::awaitable<http::Response> renew(http::Request const& request, http::Body& body);
  boost::asio::awaitable<http::Response> take_out(http::Request const& request, http::Body& body);
  Cluster& cluster_;
  LeaseConnections& connections_;
};

class GroupRoutes {
 public:
  GroupRoutes(Cluster& cluster, http::Once& once) : cluster_(cluster), once_(once) {}
  void add_to(http::Router& router);

 private:
  boost::asio::awaitable<http::Response> list(http::Request const& request, http::Body& body);
  boost::asio::awaitable<http::Response> get(http::Request const& request, http::Body& body);
  boost::asio::awaitable<http::Response> put(http::Request const& request, http::Body& body);
  boost::asio::awaitable<http::Response> erase(http::Request const& request, http::Body& body);
  boost::asio::awaitable<http::Response> member(http::Request const& request, http::Body& body);
  Cluster& cluster_;
  http::Once& once_;
};

class CollectiveRoutes {
 public:
  explicit CollectiveRoutes(Collectives& collectives) : collectives_(collectives) {}
  void add_to(http::Router& router);

 private:
  boost::asio::awaitable<http::Response> list(http::Request const& request, http::Body& body);
  boost::asio::awaitable<http::Response> get(http::Request const& request, http::Body& body);
  boost::asio::awaitable<http::Response> post(http::Request const& request, http::Body& body);
  boost::asio::awaitable<http::Response> put(http::Request const& request, http::Body& body);
  boost::asio::awaitable<http::Response> cancel(http::Request const& request, http::Body& body);
  boost::asio::awaitable<http::Response> launch(http::Request const& request, http::Body& body, Records::Name name);
  Collectives& collectives_;
};

class ParameterRoutes {
 public:
  ParameterRoutes(ParameterDirectory& directory, Checkpoints& checkpoints, Cluster& cluster, http::Once& once)
      : directory_(directory), checkpoints_(checkpoints), cluster_(cluster), once_(once) {}
  void add_to(http::Router& router);

 private:
  boost::asio::awaitable<http::Response> list(http::Request const& request, http::Body& body);
  boost::asio::awaitable<http::Response> get(http::Request const& request, http::Body& body);
  boost::asio::awaitable<http::Response> put(http::Request const& request, http::Body& body);
  boost::asio::awaitable<http::Response> erase(http::Request const& request, http::Body& body);
  boost::asio::awaitable<http::Response> give_up(http::Request const& request, http::Body& body);
  boost::asio::awaitable<http::Response> checkpoint(http::Request const& request, http::Body& body);
  boost::asio::awaitable<http::Response> hand_over(http::Request const& request, http::Body& body);
  void heed_suspicion(http::Request const& request, std::string const& parameter);
  ParameterDirectory& directory_;
  Checkpoints& checkpoints_;
  Cluster& cluster_;
  http::Once& once_;
};

class EventRoutes {
 public:
  explicit EventRoutes(Events& events) : events_(events) {}
  void add_to(http::Router& router);

 private:
  boost::asio::awaitable<http::Response> get(http::Request const& request, http::Body& body);
  boost::asio::awaitable<http::Response> page(http::Request const& request, std::optional<EventPosition> since);
  Events& events_;
};

// Routes that only use the model.
class SimulationRoutes {
 public:
  explicit SimulationRoutes(Planner& planner) : planner_(planner) {}
  void add_to(http::Router& router);

 private:
  boost::asio::awaitable<http::Response> post(http::Request const& request, http::Body& body);
  Planner& planner_;
};

// Dry runs, health, metrics, version, and the routes that every service has.
class ServiceRoutes {
 public:
  struct Parts {
    Cluster& cluster;
    Planner& planner;
    std::function<std::string()> metrics;  // makes the exposition
    Journal const& journal;
    std::function<bool()> draining;
    http::Security const& security;
  };
  explicit ServiceRoutes(Parts parts) : parts_(std::move(parts)) {}
  void add_to(http::Router& router);

 private:
  boost::asio::awaitable<http::Response> live(http::Request const& request, http::Body& body);
  boost::asio::awaitable<http::Response> ready(http::Request const& request, http::Body& body);
  boost::asio::awaitable<http::Response> metrics(http::Request const& request, http::Body& body);
  boost::asio::awaitable<http::Response> version(http::Request const& request, http::Body& body);
  boost::asio::awaitable<http::Response> plan(http::Request const& request, http::Body& body);
  Parts parts_;
  http::Router const* router_ = nullptr;  // the router of add_to()
};

// Reads the body as a message; problems as in decode(). `unknown`: see http/json/json.hpp.
template <class Message>
boost::asio::awaitable<http::Checked<Message>> read_message(http::Body& body,
                                                            http::UnknownFields unknown = http::UnknownFields::refuse) {
  auto const text = co_await body.read_all(http::json_limit_bytes);
  if (text.has_error()) co_return text.error();
  co_return http::decode<Message>(text.value(), unknown);
}

template <class Routes>
http::Handler handler(Routes* routes,
                      boost::asio::awaitable<http::Response> (Routes::*member)(http::Request const&, http::Body&)) {
  return [routes, member](http::Request const& request, http::Body& body) { return (routes->*member)(request, body); };
}

}  // namespace chorus::coordinator
