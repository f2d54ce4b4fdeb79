// Maps method and path to a handler. A value, filled by main() before the server starts and constant afterwards.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "http/message/access.hpp"
#include "http/message/message.hpp"

namespace chorus::http {

// A handler runs on the server's thread. It may throw only for the impossible: the exception is logged and answered
// with 500 `internal`. The objects to which a handler is bound outlive the server's stop().
using Handler = std::function<boost::asio::awaitable<Response>(Request const& request, Body& body)>;

class Router {
 public:
  // Pattern segments are literal or one {name}: "/v1/tensors/{name}". A {name} matches one non-empty segment; a
  // {name...} at the end matches one or more segments with the slashes between them.
  // GET also answers HEAD. `access`: the role that the route requires.
  void add(Method method, std::string_view pattern, Access access, Handler handler);

  // Adds all routes of another router; `made` makes each new handler from the old one.
  void add(Router routes, std::function<Handler(Handler)> const& made);

  // Sets the query parameters of a route that was added. Requests with other parameters are then refused; without this
  // call every parameter is taken.
  void restrict_query(Method method, std::string_view pattern, std::vector<std::string> names);

  struct Match {
    Handler const* handler = nullptr;                 // null: `problem` says 404 or 405
    std::vector<std::string> const* query = nullptr;  // names of the route's query parameters; null: any
    std::string_view pattern;                         // label for metrics, of bounded cardinality
    Problem problem;
    Access access = Access::admin;  // role required by the route
    std::string allow;              // the methods of this path
  };
  // Fills request.parameters.
  [[nodiscard]] Match match(Request& request) const;

  struct Entry {
    Method method;
    std::string_view pattern;
    Access access;
  };
  // Returns all routes in the order in which they were added.
  [[nodiscard]] std::vector<Entry> entries() const;

 private:
  // Makes the problem for a request without a handler: no route fits, or none with this method.
  [[nodiscard]] Match refuse(Request const& request, std::optional<std::vector<std::string>> const& path) const;

  struct Route {
    Method method;
    std::string pattern;
    std::vector<std::string> segments;
    bool takes_rest;  // the last segment is a {name...}
    Access access;
    Handler handler;
    std::optional<std::vector<std::string>> query;
  };
  void add(Route route);

  std::vector<Route> routes_;
};

// Problem bad_request: the query has a parameter that the route does not have, or one parameter twice.
[[nodiscard]] std::optional<Problem> check_query(Request const& request, Router::Match const& match);

}  // namespace chorus::http
