#include "worker/devices/nvml/testing/nvml_double.hpp"

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>

#include "worker/devices/nvml/nvml_abi.hpp"

using namespace chorus::devices;
using nvml::Device;
using nvml::PciInfo;
using nvml::Return;
using testing::NvmlHost;

namespace {

constexpr Return unknown_error = 999, uninitialized = 1;

NvmlHost host = NvmlHost::no_gpu;
int open_sessions = 0, calls = 0, until_failure = -1;

// Counts the call. Returns true if it must fail.
bool fails() {
  ++calls;
  return until_failure >= 0 && until_failure-- == 0;
}

// NVLinks between two GPUs of a p3.16xlarge.
constexpr std::array<std::array<unsigned, 8>, 8> mesh{{{0, 1, 1, 2, 2, 0, 0, 0},
                                                       {1, 0, 2, 1, 0, 2, 0, 0},
                                                       {1, 2, 0, 2, 0, 0, 1, 0},
                                                       {2, 1, 2, 0, 0, 0, 0, 1},
                                                       {2, 0, 0, 0, 0, 1, 1, 2},
                                                       {0, 2, 0, 0, 1, 0, 2, 1},
                                                       {0, 0, 1, 0, 1, 2, 0, 2},
                                                       {0, 0, 0, 1, 2, 1, 2, 0}}};

struct Host {
  unsigned gpus, links;
  char const* name;
  unsigned first_device, memory_mhz, memory_bits, pcie_generation, link_version;
};

Host const& here() {
  static constexpr std::array<Host, 4> hosts{{{8, 6, "Tesla V100-SXM2-16GB", 0x17, 877, 4096, 3, 2},
                                              {4, 18, "NVIDIA H100 80GB HBM3", 0x05, 2619, 5120, 5, 6},
                                              {0, 0, "", 0, 0, 0, 0, 0},
                                              {2, 0, "Quadro K2000", 0x02, 2000, 128, 2, 0}}};
  return hosts[static_cast<std::size_t>(host)];
}

// Handles are numbers from 1.
unsigned index_of(Device device) { return static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(device)) - 1; }
bool is_device(Device device) { return open_sessions > 0 && device != nullptr && index_of(device) < here().gpus; }

// The GPU or switch that a link of a GPU leads to.
unsigned peer_of(unsigned gpu, unsigned link) {
  if (host == NvmlHost::hgx_h100) return link % 4;
  for (unsigned peer = 0; peer < here().gpus; ++peer) {
    if (link < mesh[gpu][peer]) return peer;
    link -= mesh[gpu][peer];
  }
  return gpu;
}

void say(unsigned device, PciInfo* info) {
  std::memset(info, 0x5a, sizeof *info);
  info->domain = 0;
  info->bus = 0;
  info->device = device;
  std::snprintf(info->bus_id, sizeof info->bus_id, "00000000:00:%02X.0", device);
}

Return say(std::string const& said, char* text, unsigned length) {
  if (said.size() >= length) return nvml::invalid_argument;
  std::memcpy(text, said.c_str(), said.size() + 1);
  return nvml::success;
}

// Answers a query of a device.
template <class Answer>
Return answer(Device device, Answer const& give) {
  if (fails()) return unknown_error;
  if (!is_device(device)) return open_sessions > 0 ? nvml::invalid_argument : uninitialized;
  return give(index_of(device));
}

// Answers a query of a device's link.
template <class Answer>
Return answer(Device device, unsigned link, Answer const& give) {
  return answer(device, [&](unsigned gpu) -> Return {
    if (here().links == 0) return nvml::not_supported;
    if (link >= here().links) return nvml::invalid_argument;
    give(gpu);
    return nvml::success;
  });
}

Return answer(Device device, unsigned* number, unsigned value) {
  return answer(device, [&](unsigned) -> Return {
    if (value == 0) return nvml::not_supported;
    *number = value;
    return nvml::success;
  });
}

}  // namespace

extern "C" {
void nvml_double_be(NvmlHost there) { host = there, calls = 0, until_failure = -1; }
void nvml_double_fail(int count) { calls = 0, until_failure = count; }
int nvml_double_calls() { return calls; }
int nvml_double_open() { return open_sessions; }

Return nvmlInit_v2() {
  if (fails()) return unknown_error;
  ++open_sessions;
  return nvml::success;
}
Return nvmlShutdown() {
  --open_sessions;
  return fails() ? unknown_error : nvml::success;
}
char const* nvmlErrorString(Return status) { return status == unknown_error ? "Unknown Error" : nullptr; }

Return nvmlDeviceGetCount_v2(unsigned* count) {
  if (fails()) return unknown_error;
  *count = here().gpus;
  return open_sessions > 0 ? nvml::success : uninitialized;
}
Return nvmlDeviceGetHandleByIndex_v2(unsigned index, Device* device) {
  if (fails()) return unknown_error;
  if (host == NvmlHost::one_old_gpu && index == 1) return nvml::no_permission;
  *device = reinterpret_cast<Device>(std::uintptr_t{index} + 1);
  return nvml::success;
}
Return nvmlDeviceGetUUID(Device device, char* text, unsigned length) {
  return answer(device, [&](unsigned gpu) {
    return say("GPU-00000000-0000-0000-0000-00000000000" + std::to_string(gpu), text, length);
  });
}
Return nvmlDeviceGetName(Device device, char* text, unsigned length) {
  return answer(device, [&](unsigned) { return say(here().name, text, length); });
}
Return nvmlDeviceGetPciInfo_v3(Device device, PciInfo* info) {
  return answer(device, [&](unsigned gpu) -> Return {
    say(here().first_device + gpu, info);
    return nvml::success;
  });
}
Return nvmlDeviceGetMaxPcieLinkGeneration(Device device, unsigned* number) {
  return answer(device, number, here().pcie_generation);
}
Return nvmlDeviceGetMaxPcieLinkWidth(Device device, unsigned* number) { return answer(device, number, 16); }
Return nvmlDeviceGetMemoryBusWidth(Device device, unsigned* number) {
  return answer(device, number, here().memory_bits);
}
Return nvmlDeviceGetMaxClockInfo(Device device, int clock, unsigned* mhz) {
  return answer(device, mhz, clock == nvml::memory_clock ? here().memory_mhz : 1);
}
Return nvmlDeviceGetNvLinkState(Device device, unsigned link, unsigned* state) {
  return answer(device, link, [&](unsigned) { *state = nvml::active; });
}
Return nvmlDeviceGetNvLinkVersion(Device device, unsigned link, unsigned* version) {
  return answer(device, link, [&](unsigned) { *version = here().link_version; });
}
Return nvmlDeviceGetNvLinkRemoteDeviceType(Device device, unsigned link, unsigned* type) {
  return answer(device, link,
                [&](unsigned) { *type = host == NvmlHost::hgx_h100 ? nvml::remote_switch : nvml::remote_gpu; });
}
Return nvmlDeviceGetNvLinkRemotePciInfo_v2(Device device, unsigned link, PciInfo* info) {
  return answer(device, link, [&](unsigned gpu) {
    say((host == NvmlHost::hgx_h100 ? 0x10 : here().first_device) + peer_of(gpu, link), info);
  });
}
}
