// The part of NVML's C interface that is used here, as NVIDIA documents it. The library is loaded at run time; neither
// its header nor the library is needed to build.
//
// Source: NVIDIA, "NVML API Reference Guide".
#pragma once

#include <cstddef>

namespace chorus::devices::nvml {

using Return = int;  // nvmlReturn_t
inline constexpr Return success = 0;
inline constexpr Return invalid_argument = 2;     // for a link: the device has no such link
inline constexpr Return not_supported = 3;        // by this device
inline constexpr Return no_permission = 4;        // for this process
inline constexpr Return function_not_found = 13;  // in this driver

using Device = struct nvmlDevice_st*;

struct PciInfo {  // nvmlPciInfo_t
  char bus_id_legacy[16];
  unsigned domain;
  unsigned bus;
  unsigned device;
  unsigned device_id;
  unsigned subsystem_id;
  char bus_id[32];
};
static_assert(sizeof(PciInfo) == 68 && offsetof(PciInfo, domain) == 16 && offsetof(PciInfo, bus_id) == 36);

inline constexpr unsigned uuid_bytes = 96;  // NVML_DEVICE_UUID_V2_BUFFER_SIZE
inline constexpr unsigned name_bytes = 96;  // NVML_DEVICE_NAME_V2_BUFFER_SIZE
inline constexpr unsigned links_max = 36;   // above NVML_NVLINK_MAX_LINKS of every release so far

inline constexpr int memory_clock = 2;     // NVML_CLOCK_MEM
inline constexpr unsigned active = 1;      // NVML_FEATURE_ENABLED
inline constexpr unsigned remote_gpu = 0;  // nvmlIntNvLinkDeviceType_t
inline constexpr unsigned remote_switch = 2;

// Function types, with the names that the library exports.
using Init = Return();                                        // nvmlInit_v2
using Shutdown = Return();                                    // nvmlShutdown
using ErrorString = char const*(Return);                      // nvmlErrorString
using GetCount = Return(unsigned* count);                     // nvmlDeviceGetCount_v2
using GetHandle = Return(unsigned index, Device*);            // nvmlDeviceGetHandleByIndex_v2
using GetText = Return(Device, char* text, unsigned length);  // nvmlDeviceGetUUID, nvmlDeviceGetName
using GetPciInfo = Return(Device, PciInfo*);                  // nvmlDeviceGetPciInfo_v3
using GetNumber = Return(Device, unsigned*);                  // nvmlDeviceGetMemoryBusWidth and of PCIe
using GetClock = Return(Device, int clock, unsigned* mhz);    // nvmlDeviceGetMaxClockInfo
using GetOfLink = Return(Device, unsigned link, unsigned*);   // nvmlDeviceGetNvLinkState, Version, RemoteDeviceType
using GetLinkPeer = Return(Device, unsigned link, PciInfo*);  // nvmlDeviceGetNvLinkRemotePciInfo_v2

}  // namespace chorus::devices::nvml
