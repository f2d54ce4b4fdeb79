// The REST interface: reads requests, calls the services behind it, shows what they say. Holds no state of its own.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <functional>

#include "http/auth/security.hpp"
#include "http/json.hpp"
#include "http/router.hpp"
#include "server/coordinator/checkpoints.hpp"
#include "server/coordinator/cluster.hpp"
#include "server/coordinator/collectives.hpp"
#include "server/coordinator/lease_connections.hpp"
#include "server/coordinator/parameter_directory.hpp"
#include "server/coordinator/planner.hpp"

namespace chorus::coordinator {

// Everything referred to outlives the server's stop(), as do the routes themselves.
// What a worker may say of itself alone is said by the one whose certificate is for what the worker advertises, if
// certificates are shown. Nothing of a worker that is not known.
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
  explicit GroupRoutes(Cluster& cluster) : cluster_(cluster) {}
  void add_to(http::Router& router);

 private:
  boost::asio::awaitable<http::Response> list(http::Request const& request, http::Body& body);
  boost::asio::awaitable<http::Response> get(http::Request const& request, http::Body& body);
  boost::asio::awaitable<http::Response> put(http::Request const& request, http::Body& body);
  boost::asio::awaitable<http::Response> erase(http::Request const& request, http::Body& body);
  Cluster& cluster_;
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
  ParameterRoutes(ParameterDirectory& directory, Checkpoints& checkpoints, Cluster& cluster)
      : directory_(directory), checkpoints_(checkpoints), cluster_(cluster) {}
  void add_to(http::Router& router);

 private:
  boost::asio::awaitable<http::Response> list(http::Request const& request, http::Body& body);
  boost::asio::awaitable<http::Response> get(http::Request const& request, http::Body& body);
  boost::asio::awaitable<http::Response> put(http::Request const& request, http::Body& body);
  boost::asio::awaitable<http::Response> erase(http::Request const& request, http::Body& body);
  boost::asio::awaitable<http::Response> checkpoint(http::Request const& request, http::Body& body);
  boost::asio::awaitable<http::Response> hand_over(http::Request const& request, http::Body& body);
  void heed_suspicion(http::Request const& request, std::string const& parameter);
  ParameterDirectory& directory_;
  Checkpoints& checkpoints_;
  Cluster& cluster_;
};

class EventRoutes {
 public:
  explicit EventRoutes(Events& events) : events_(events) {}
  void add_to(http::Router& router);

 private:
  boost::asio::awaitable<http::Response> get(http::Request const& request, http::Body& body);
  boost::asio::awaitable<http::Response> page(http::Request const& request, std::optional<std::uint64_t> since);
  Events& events_;
};

// Everything that is asked of the model alone.
class SimulationRoutes {
 public:
  explicit SimulationRoutes(Planner& planner) : planner_(planner) {}
  void add_to(http::Router& router);

 private:
  boost::asio::awaitable<http::Response> post(http::Request const& request, http::Body& body);
  Planner& planner_;
};

// Dry runs, health, metrics, version, and what is documented at every service.
class ServiceRoutes {
 public:
  struct Parts {
    Cluster& cluster;
    Planner& planner;
    std::function<std::string()> metrics;  // the exposition
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
  http::Router const* router_ = nullptr;  // of add_to()
};

// The body as a message; problems as decode(). `unknown`: see http/json.hpp.
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
