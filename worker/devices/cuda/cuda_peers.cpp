#include "worker/devices/cuda/cuda_peers.hpp"

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

Status reach(GpuInfo const& from, std::string_view uuid) {
  if (uuid == from.uuid) return ok();
  auto const refuse = [&from](std::string const& why) {
    static_cast<void>(cudaGetLastError());
    return Error(GpuErrc::unavailable, "cuda:" + std::to_string(from.index) + ": " + why);
  };
  int count = 0;
  if (auto const e = cudaGetDeviceCount(&count); e != cudaSuccess) return refuse(cudaGetErrorString(e));
  for (int device = 0; device < count; ++device) {
    cudaDeviceProp properties{};
    if (cudaGetDeviceProperties(&properties, device) != cudaSuccess || uuid_text(properties.uuid) != uuid) continue;
    int can_read = 0;
    auto const e = cudaDeviceCanAccessPeer(&can_read, static_cast<int>(from.index), device);
    if (e == cudaSuccess && can_read != 0) return ok();
    return refuse("no peer access to cuda:" + std::to_string(device) + ", " + std::string(uuid) +
                  (e == cudaSuccess ? "" : std::string(": ") + cudaGetErrorString(e)));
  }
  return refuse("this process does not see " + std::string(uuid));
}

}  // namespace chorus::devices::cuda
