// What all hosts of a worker share.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "http/client/peer_client.hpp"
#include "worker/parameters/disk/disk.hpp"
#include "worker/parameters/serving/copy/owner_lease.hpp"
#include "worker/parameters/shard/shard.hpp"

namespace chorus::parameters {

// Callbacks about events of shards, for metrics and logs. Called on the control thread; each may be empty.
struct ShardEvents {
  std::function<void(std::string_view kind, std::string_view result, double seconds)> pushed;
  std::function<void(std::uint64_t clocks)> read_behind;  // how far the slowest client is behind the reader
  std::function<void(std::string_view what)> waited;      // "pull" or "push"
  std::function<void(std::uint64_t elements)> nonfinite;
  std::function<void(std::uint64_t rows)> rows_created;  // in a shard that is owned here
  std::function<void(std::uint64_t records, std::uint64_t bytes, double seconds)> logged;  // with one sync
  std::function<void()> log_truncated;
  // This worker has lost the shard: its device has failed, or a backup has missed a push.
  std::function<void(std::string const& parameter, std::uint32_t shard, std::string const& why)> lost;
  std::function<void(std::string const& shard, std::string const& why)> log_failed;
  // A backup does not answer; the receiver checks whether it lives.
  std::function<void(std::string const& worker, std::string const& incarnation)> unreachable;
};

// The objects that all hosts of a worker share. Outlives them.
struct ShardTools {
  boost::asio::any_io_executor executor;  // of the control thread
  boost::asio::any_io_executor threads;   // for arithmetic on large shards
  http::PeerClient client;
  tensors::Pool& pool;
  ShardEvents events;
  std::uint64_t fill_bytes_per_second = 256 << 20;  // to a new backup
  // For push logs of owners, if a parameter asks for them.
  struct Logs {
    Disk* disk = nullptr;
    std::string root;                         // "": this worker keeps no logs
    std::uint64_t snapshot_bytes = 64 << 20;  // least size of pushes before a new base is written
  };
  Logs logs = {};
  devices::Gpus const* gpus = nullptr;  // null: no shard is on a GPU
  OwnerLease const* lease = nullptr;    // null: owners need no lease

  [[nodiscard]] ShardMemory memory() const { return {pool, gpus}; }
};

}  // namespace chorus::parameters
