#include "worker/devices/cuda/runtime/cuda_peers.hpp"

#include <cstdio>

namespace chorus::devices::cuda {

std::string uuid_text(cudaUUID_t const& uuid) {
  std::string text = "GPU-";
  for (std::size_t i = 0; i < sizeof uuid.bytes; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned>(static_cast<unsigned char>(uuid.bytes[i])));
    text += digits;
  }
  return text;
}

Status reach(GpuInfo const& from, std::vector<Neighbour> const& neighbours, std::string_view uuid) {
  if (uuid == from.uuid) return ok();
  auto const refuse = [&from](std::string const& why) {
    return Error(GpuErrc::unavailable, "cuda:" + std::to_string(from.index) + ": " + why);
  };
  for (auto const& [index, theirs] : neighbours) {
    if (theirs != uuid) continue;
    auto const peer = static_cast<int>(index);
    auto const self = static_cast<int>(from.index);
    int can_read = 0;
    auto e = cudaDeviceCanAccessPeer(&can_read, self, peer);
    if (e == cudaSuccess && can_read == 0) e = cudaErrorPeerAccessUnsupported;
    if (e == cudaSuccess) e = cudaSetDevice(self);
    if (e == cudaSuccess) e = cudaDeviceEnablePeerAccess(peer, 0);
    static_cast<void>(cudaGetLastError());
    if (e == cudaSuccess || e == cudaErrorPeerAccessAlreadyEnabled) return ok();
    auto why = refuse("no peer access to cuda:" + std::to_string(index) + ", " + std::string(uuid) + ": " +
                      cudaGetErrorString(e));
    if (e == cudaErrorMemoryAllocation) why.code = GpuErrc::out_of_memory;
    return why;
  }
  return refuse("this process does not see " + std::string(uuid));
}

}  // namespace chorus::devices::cuda
