// What an orchestrator puts into the environment of a service without being asked.
#pragma once

namespace chorus::http {

// Kubernetes sets NAME_PORT=tcp://ADDRESS:PORT for every Service, so CHORUS_PORT beside a Service called "chorus": that
// is no setting of ours and is taken out of the environment. Before any thread is started and any flag is parsed.
void ignore_service_links();

}  // namespace chorus::http
