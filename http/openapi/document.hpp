// The OpenAPI 3.1 document of both services: docs/openapi.json, and what they serve at /openapi.json.
#pragma once

#include <string>

#include "http/router.hpp"

namespace chorus::http::openapi {

// The same text always: of the operations and the messages of this release.
[[nodiscard]] std::string document();

// GET /openapi.json, open: it says nothing about this installation. The document is made here, once.
void add_openapi(Router& router);

}  // namespace chorus::http::openapi
