// From method and path to a handler. A value, filled by main() before the server starts and not changed afterwards.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "http/access.hpp"
#include "http/message.hpp"

namespace chorus::http {

// A handler runs on the server's thread. It may throw only for the impossible: that is logged and answered with 500
// `internal`. The objects it is bound to outlive the server's stop().
using Handler = std::function<boost::asio::awaitable<Response>(Request const& request, Body& body)>;

class Router {
 public:
  // Pattern segments are literal or one {name}: "/v1/tensors/{name}". A {name} matches one non-empty segment,
  // {name...} at the end one or more, taken with the slashes between them.
  // GET also answers HEAD. `access`: what the caller needs; there is no route that does not say.
  void add(Method method, std::string_view pattern, Access access, Handler handler);

  // All of another one's, each with the handler that `made` makes of its own.
  void add(Router routes, std::function<Handler(Handler)> const& made);

  struct Match {
    Handler const* handler = nullptr;  // null: `problem` says 404 or 405
    std::string_view pattern;          // label for metrics: bounded cardinality
    Problem problem;
    Access access = Access::admin;  // of the route that was found
    std::string allow;              // the methods of this path
  };
  // Fills request.parameters.
  [[nodiscard]] Match match(Request& request) const;

  struct Entry {
    Method method;
    std::string_view pattern;
    Access access;
  };
  // Everything that was added, in that order.
  [[nodiscard]] std::vector<Entry> entries() const;

 private:
  // Why nobody answers: no route fits, or none with this method.
  [[nodiscard]] Match refuse(Request const& request, std::optional<std::vector<std::string>> const& path) const;

  struct Route {
    Method method;
    std::string pattern;
    std::vector<std::string> segments;
    bool takes_rest;  // the last of them
    Access access;
    Handler handler;
  };
  void add(Route route);

  std::vector<Route> routes_;
};

}  // namespace chorus::http
