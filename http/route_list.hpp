// What a service can be asked, as GET /v1 tells it: made of the router's own table.
#pragma once

#include <boost/json/array.hpp>

#include "http/router.hpp"

namespace chorus::http {

// [{"method":"GET","path":"/v1/groups/{name}","role":"read"},..]; "open" where no token is needed.
[[nodiscard]] boost::json::array routes_json(Router const& router);

}  // namespace chorus::http
