// What all parts of the placement use of the coordinator, and how long they wait.
#pragma once

#include <spdlog/logger.h>

#include <boost/asio/any_io_executor.hpp>
#include <chrono>

#include "server/coordinator/cluster/cluster.hpp"
#include "server/coordinator/journal/journal.hpp"
#include "server/coordinator/membership/worker_client.hpp"

namespace chorus::coordinator {

struct DirectoryPatience {
  std::chrono::milliseconds assignment{5000};  // for a worker to take a shard
  std::chrono::milliseconds loading{600'000};  // for a worker to take a shard that it reads from a checkpoint
  std::chrono::milliseconds repetition{100};   // between attempts to repair a placement
  // Time until workers that refused a backup are asked again, if no other worker can have it.
  std::chrono::milliseconds second_thoughts{5000};
  std::size_t most_takeovers = 512;             // at the same time
  std::chrono::milliseconds settling{600'000};  // for a new copy of a shard to be complete
  std::chrono::milliseconds recovery{5000};     // for workers to report their shards after a restart
  std::chrono::milliseconds dropping{15'000};   // for workers to drop a deleted parameter before its name is used again
  std::size_t most_moves = 2;                   // shards copied at the same time because a group has changed
};

struct PlacementTools {
  boost::asio::any_io_executor executor;
  WorkerClient& workers;
  Cluster& cluster;
  Journal& journal;
  spdlog::logger& log;
  DirectoryPatience patience;
  Random random;
};

}  // namespace chorus::coordinator
