#include "http/routing/route_list.hpp"

#include <boost/json/object.hpp>

namespace chorus::http {

boost::json::array routes_json(Router const& router) {
  boost::json::array routes;
  for (auto const& entry : router.entries())
    routes.push_back(
        boost::json::object{{"method", name(entry.method)}, {"path", entry.pattern}, {"role", name(entry.access)}});
  return routes;
}

}  // namespace chorus::http
