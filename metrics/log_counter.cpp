#include "metrics/log_counter.hpp"

#include <spdlog/logger.h>

namespace chorus::metrics {

std::shared_ptr<LogCounter const> log_counter_of(spdlog::logger const& logger) {
  for (auto const& sink : logger.sinks())
    if (auto counter = std::dynamic_pointer_cast<LogCounter const>(sink)) return counter;
  return nullptr;
}

}  // namespace chorus::metrics
