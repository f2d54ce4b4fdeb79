// The OpenAPI 3.1 document of both services: docs/openapi.json, and what they serve at /openapi.json.
#pragma once

#include <cstdint>
#include <string>

#include "http/routing/router.hpp"

namespace chorus::http::openapi {

// The same text always: of the operations and the messages of this release.
[[nodiscard]] std::string document();

enum class Service : std::uint8_t { coordinator, worker };

// The query parameters of a service's routes are those of the document from now on, and no others. Left as they are:
// routes that are open to anybody, for probes and browsers add parameters of their own, and those of services, which
// may be of another release. Every route of `router` is in the document.
void restrict_queries(Router& router, Service service);

// GET /openapi.json, open: it says nothing about this installation. The document is made here, once.
void add_openapi(Router& router);

}  // namespace chorus::http::openapi
