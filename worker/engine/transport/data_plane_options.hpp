// Settings of a data plane.
#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "worker/links/handshake.hpp"

namespace chorus::memory {
class Arena;
}

namespace chorus::http {
class Credentials;
}

namespace chorus::engine {

class FlightRecorder;

struct DataPlaneOptions {
  std::string worker;  // own id and incarnation, presented in handshakes
  std::uint64_t incarnation = 0;
  std::chrono::microseconds spin{20};  // how long the idle thread polls before it blocks; 0 blocks at once
  // The same for a caller of run(), which has nothing else to do and yields between looks: with more ranks than cores,
  // waking the caller costs more than this.
  std::chrono::microseconds call_spin{500};
  // Event loop to run in instead of a thread of its own, for callers that own the time; outlives the data plane. The
  // data plane is then made, used and destroyed by the loop's thread, not from within the loop, and run() is not
  // called.
  boost::asio::io_context* loop = nullptr;
  // Bytes per run and link that are sent without the receiver's grant; equal on all workers. Room for 128 KiB in a few
  // chunks: up to there, waiting for a grant takes longer than one more copy (docs/explanation/performance.md).
  std::uint64_t eager_bytes = 256 * 1024;
  // Size of the partial sums in f32 (partials.hpp) that runs of f16 and bf16 in host memory keep at a time. More than
  // the caches hold is slower; less delays distant peers (docs/explanation/performance.md).
  std::uint64_t partials_bytes = 8 << 20;
  // inquiry: how often a run asks the ranks that it waits for whether they live, and which ranks they wait for
  // themselves; the first ask comes after a sixteenth of it. silence: how long a rank may stay silent before it counts
  // as lost. This finds peers that are stopped, cut off or gone without a word.
  std::chrono::milliseconds inquiry{200};
  std::chrono::milliseconds silence{5000};
  // Limits per link for runs of a peer that wait here until this rank starts them, and for their data. A run beyond the
  // limits is refused, and fails on every rank.
  std::size_t early_runs = 1024;
  std::uint64_t early_bytes = 32 << 20;
  // Shared memory of this worker. Workers on the same host read tensors in it without a copy, and all other messages
  // pass through it. Null: tcp only. Outlives the data plane.
  memory::Arena* arena = nullptr;
  // Enables in-place reading of GPU memory between workers of one host: they lend the memory of their runs to each
  // other. The value is the host's number (links/host_number.hpp); empty: nothing is lent or borrowed. The GPUs of all
  // runs then outlive the data plane.
  std::optional<std::uint64_t> lending_host;
  // Presented to peers when a link is opened; outlives the data plane.
  http::Credentials const* credentials = nullptr;
  // Checksums of frames on sockets. Shared memory has none.
  links::ChecksumMode checksums = links::ChecksumMode::automatic;
  // Notified of runs that stand still, and used by groups to record their calls. Null: nothing is recorded. Outlives
  // the data plane.
  FlightRecorder* flights = nullptr;
  // Called when a link with this worker goes without shared memory, and again for each new reason. From several
  // threads, one at a time; must not call the data plane.
  std::function<void(std::string const& worker, std::string const& why)> on_link_without_shm;
  // Called when a worker on this host and this one do not read each other's GPU memory in place, in either direction.
  std::function<void(std::string const& worker, std::string const& why)> on_link_without_ipc;
};

}  // namespace chorus::engine
