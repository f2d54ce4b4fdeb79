// Shared memory of client programs on the worker's host, and tensors that lie in it.
//
// PUT /v1/shm/system/{name} with a RegionRequest registers a part of a POSIX shared memory object; GET and DELETE of
// the same path, GET /v1/shm/system lists. PUT /v1/shm/cuda/{name} with a GpuRegionRequest and so on: memory of a GPU,
// by its IPC handle; names are distinct over both. PUT /v1/tensors/{name} with a Placement as JSON makes a tensor of
// what lies there.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace chorus::api {

struct RegionRequest {
  std::string key;  // as for shm_open: "/psm_1234" is /dev/shm/psm_1234
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

struct Region {
  std::string name;
  std::string key;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::string state;                 // "ready", or "damaged" when the object has become shorter
  std::vector<std::string> tensors;  // that lie in it
};

struct RegionList {
  std::vector<Region> items;
  std::optional<std::string> next_cursor;
};

struct GpuRegionRequest {
  std::string handle;  // what cudaIpcGetMemHandle gave, its 64 bytes in base64
  std::string device;  // as the worker calls it: "cuda:0"
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

struct GpuRegion {
  std::string name;
  std::string device;
  std::uint64_t offset = 0;  // in the memory of the handle
  std::uint64_t bytes = 0;
  std::string state;                 // "ready", or "damaged" when the GPU is lost
  std::vector<std::string> tensors;  // that lie in it
};

struct GpuRegionList {
  std::vector<GpuRegion> items;
  std::optional<std::string> next_cursor;
};

// Where a tensor lies that is not in the worker's own memory.
struct Place {
  std::string region;
  std::uint64_t offset = 0;  // in the region
};

struct Placement {
  std::string dtype;
  std::vector<std::uint64_t> shape;
  Place shm;
};

}  // namespace chorus::api
