// What a service does about the process that it finds itself in, before anything else.
#pragma once

#include <cstddef>

namespace chorus::http {

// Kubernetes sets NAME_PORT=tcp://ADDRESS:PORT for every Service, so CHORUS_PORT beside a Service called "chorus": that
// is no setting of ours and is taken out of the environment. Before any thread is started and any flag is parsed.
void ignore_service_links();

// Raises the limit of open descriptors as far as it goes, and gives how many connections a server may then accept, so
// that the process always has descriptors left for its own calls: half of them, at most `wanted`.
[[nodiscard]] std::size_t prepare_for_connections(std::size_t wanted);

// A peer, or a reader of our standard output, that goes away must not end the process.
void ignore_broken_pipes();

}  // namespace chorus::http
