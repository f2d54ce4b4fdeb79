// From method and path to a handler. A value, filled by main() before the server starts and not changed afterwards.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "http/message.hpp"

namespace chorus::http {

// A handler runs on the server's thread. It may throw only for the impossible: that is logged and answered with 500
// `internal`. The objects it is bound to outlive the server's stop().
using Handler = std::function<boost::asio::awaitable<Response>(Request const& request, Body& body)>;

class Router {
 public:
  // Pattern segments are literal or one {name}: "/v1/tensors/{name}". A {name} matches one non-empty segment,
  // {name...} at the end one or more, taken with the slashes between them.
  // GET also answers HEAD.
  void add(Method method, std::string_view pattern, Handler handler);

  struct Match {
    Handler const* handler = nullptr;  // null: `problem` says 404 or 405
    std::string_view pattern;          // label for metrics: bounded cardinality
    Problem problem;
    std::string allow;  // for 405
  };
  // Fills request.parameters.
  [[nodiscard]] Match match(Request& request) const;

 private:
  // Why nobody answers: no route fits, or none with this method.
  [[nodiscard]] Match refuse(Request const& request, std::optional<std::vector<std::string>> const& path) const;

  struct Route {
    Method method;
    std::string pattern;
    std::vector<std::string> segments;
    Handler handler;
  };
  std::vector<Route> routes_;
};

}  // namespace chorus::http
