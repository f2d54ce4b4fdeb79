#include "http/openapi/operation.hpp"

namespace chorus::http::openapi {

using enum Method;
using enum ProblemCode;

std::string_view name(Service service) { return service == Service::coordinator ? "coordinator" : "worker"; }

void add_common_operations(Table& table) {
  table.add(get, "/healthz", Access::open, "The process runs").gives(200, "It does.", {{text_media}});
  table.add(get, "/livez", Access::open, "The process runs").gives(200, "It does.", {{text_media}});
  table.add(get, "/readyz", Access::open, "Requests are served: 503 while it begins or stops")
      .gives(200, "They are.", {{text_media}})
      .fails_with({unavailable});
  table.add(get, "/metrics", Access::read, "Metrics in the text format of Prometheus")
      .gives(200, "All of them.", {{text_media}});
  table.add(get, "/v1", Access::read, "What the service is, and every route that it has")
      .gives(200, "Name, version, build, extensions and routes.", {{json_media}});
  table.add(get, "/problems/{code}", Access::open, "What a problem means and what to do: where its type points")
      .gives(200, "The page.", {{text_media}})
      .fails_with({not_found});
  table.add(get, "/openapi.json", Access::open, "This document")
      .reads_headers({{"If-None-Match", Type::text, "an ETag of it"}})
      .gives(200, "The document.", {{json_media}}, {{"ETag", Type::text, "of the document", true}})
      .gives_nothing(304, "It has not changed.", {{"ETag", Type::text, "of the document", true}});
}

}  // namespace chorus::http::openapi
