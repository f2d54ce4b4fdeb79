// Default address and name of a worker.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "worker/service/options.hpp"

namespace chorus::service {

// The worker's URL if its address is not mapped.
[[nodiscard]] std::string bound_url(WorkerOptions const& options, std::string_view scheme, std::uint16_t port);

// "<host_name>-<port>"; characters that ids must not have are replaced.
[[nodiscard]] std::string default_worker_id(std::string host_name, std::uint16_t port);

}  // namespace chorus::service
