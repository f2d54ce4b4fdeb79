#include "worker/service/scraped_state.hpp"

namespace chorus::service {

metrics::LinkTraffic scraped(engine::PeerTraffic const& peer) {
  metrics::LinkTraffic shown{peer.worker,
                             peer.sent_bytes,
                             peer.received_bytes,
                             peer.send_busy_seconds,
                             peer.receive_busy_seconds,
                             peer.connections,
                             peer.link.empty() ? "none" : peer.link};
  shown.retries = peer.dials > 0 ? peer.dials - 1 : 0;
  shown.errors = {peer.ends.unreachable, peer.ends.closed, peer.ends.refused, peer.ends.malformed, peer.ends.corrupt};
  shown.round_trips = peer.round_trips;
  shown.round_trip_seconds = peer.round_trip_seconds;
  shown.last_round_trip_seconds = peer.last_round_trip_seconds;
  return shown;
}

metrics::GpuState scraped(devices::GpuUnit const& gpu) {
  auto const totals = gpu.totals();
  metrics::GpuState shown{devices::device_name(gpu.gpu().info().index), gpu.lost().has_value()};
  shown.in_bytes = totals.use.in_bytes;
  shown.out_bytes = totals.use.out_bytes;
  shown.peer_bytes = totals.use.peer_bytes;
  shown.nccl_bytes = totals.use.nccl_bytes;
  shown.stepped_bytes = totals.use.stepped_bytes;
  shown.kernels = totals.use.kernels;
  shown.in_seconds = totals.use.in_seconds;
  shown.compute_seconds = totals.use.compute_seconds;
  shown.out_seconds = totals.use.out_seconds;
  shown.arena_bytes = totals.arena_bytes;
  shown.arena_used_bytes = totals.arena_used_bytes;
  shown.pinned_bytes = totals.pinned_bytes;
  shown.pinned_limit_bytes = totals.pinned_limit_bytes;
  return shown;
}

metrics::MemoryState scraped(tensors::PoolUse const& use, tensors::Residuals const& residuals) {
  return {use.kept_bytes, use.private_bytes, use.lacks, use.idle_bytes, use.needed_bytes, residuals.bytes()};
}

}  // namespace chorus::service
