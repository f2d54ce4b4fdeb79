// Settings of a worker.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "base/logging/log.hpp"
#include "base/runtime/memory_limit.hpp"
#include "collectives/core/locality.hpp"
#include "http/server/security.hpp"
#include "worker/devices/nccl/nccl_library.hpp"
#include "worker/devices/nvml/nvml.hpp"
#include "worker/links/handshake.hpp"
#include "worker/service/memory/gpu_choice.hpp"

namespace chorus::service {

// Use of NCCL among a worker's GPUs. automatic: if it is found and there are several GPUs. on: an error if it is not
// found.
enum class NcclUse { automatic, on, off };

struct WorkerOptions {
  std::string host = "127.0.0.1";  // to bind
  std::uint16_t port = 7071;       // 0 picks one
  std::string advertise;           // HOST[:PORT] that others use; "" for `host`, or `host_name` if that is a wildcard
  std::string coordinator;         // URL, or several with commas; "" for a worker on its own
  std::string id;                  // "" for "<host_name>-<port>"
  Locality locality;               // an empty host becomes `host_name`
  std::uint64_t tensor_limit_bytes = std::uint64_t{16} << 30;
  std::uint64_t memory_limit_bytes = std::uint64_t{16} << 30;  // of all tensors and results
  bool shares_memory = true;                                   // with other workers of the host
  GpuChoice gpus;                                              // used by main(), which finds them
  devices::GpuLimits gpu_limits;
  bool lends_gpu_memory = true;  // to other workers of the host, which read it in place
  NcclUse nccl = NcclUse::automatic;
  links::ChecksumMode link_checksum = links::ChecksumMode::automatic;
  bool allows_client_shm = false;                   // see ClientMemory
  std::string checkpoint_directory;                 // of parameters; "": no checkpoints
  std::string log_directory;                        // of pushes; "": no logs
  std::uint64_t log_snapshot_bytes = 64 << 20;      // bytes of pushes before a new base is written
  std::uint64_t fill_bytes_per_second = 256 << 20;  // limit for copying a shard's image to a new copy
  std::chrono::milliseconds disk_patience{30'000};  // limit for one call to a disk
  std::chrono::microseconds spin{0};
  std::chrono::milliseconds drain_timeout{5000};
  std::size_t connections = 16384;        // accepted at once
  std::chrono::milliseconds stall{2000};  // how long a run may stand still before it is reported
  logging::Format log_format = logging::Format::text;
  http::SecurityOptions security;

  // From the surroundings, not from the command line.
  std::string nvml_library = devices::nvml_library;
  std::string nccl_library = devices::nccl_library;
  bool has_threads = true;  // false: collectives run on the control thread too, for tests that own the time
  std::string host_name;
  http::MemoryLimit memory;  // of the process; 0: not known
  std::uint64_t incarnation = 0;
  double start_time_seconds = 0;  // wall clock, since 1970
};

}  // namespace chorus::service
