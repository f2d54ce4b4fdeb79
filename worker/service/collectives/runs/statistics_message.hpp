// A run's statistics in messages.
#pragma once

#include "collectives/core/run_statistics.hpp"

namespace chorus::service {

// Message: api::RunReport or api::Flight.
template <class Message>
void put_statistics(Message& message, RunStatistics const& statistics) {
  message.seconds = statistics.seconds();
  message.wait_seconds = statistics.wait_seconds;
  message.bytes_sent = statistics.bytes_sent;
  message.bytes_received = statistics.bytes_received;
  message.steps = statistics.steps;
}

}  // namespace chorus::service
