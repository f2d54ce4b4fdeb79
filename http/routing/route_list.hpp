// The answer to GET /v1: the routes of a service, made from the router's table.
#pragma once

#include <boost/json/array.hpp>

#include "http/routing/router.hpp"

namespace chorus::http {

// [{"method":"GET","path":"/v1/groups/{name}","role":"read"},..]; "open" if no token is needed.
[[nodiscard]] boost::json::array routes_json(Router const& router);

}  // namespace chorus::http
