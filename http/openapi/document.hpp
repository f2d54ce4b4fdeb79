// The OpenAPI 3.1 document of both services. It is docs/openapi.json, and the services serve it at /openapi.json.
#pragma once

#include <cstdint>
#include <string>

#include "http/routing/router.hpp"

namespace chorus::http::openapi {

// Returns the document, which depends only on the operations and messages of this release.
[[nodiscard]] std::string document();

enum class Service : std::uint8_t { coordinator, worker };

// Limits the query parameters of a service's routes to those of the document. Exceptions: open routes, because probes
// and browsers add parameters of their own, and routes for services, which may be of another release. Asserts that
// every route of `router` is in the document.
void restrict_queries(Router& router, Service service);

// Adds GET /openapi.json and makes the document, once. The route is open, as it tells nothing about the installation.
void add_openapi(Router& router);

}  // namespace chorus::http::openapi
