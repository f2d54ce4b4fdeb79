// Messages about memory of client programs on the worker's host, and about tensors in it.
//
// PUT /v1/shm/system/{name} with a RegionRequest registers a part of a POSIX shared memory object; GET and DELETE have
// the same path, and GET /v1/shm/system lists all regions. /v1/shm/cuda does the same with a GpuRegionRequest for
// memory of a GPU, by its IPC handle. A name is unique over both kinds. PUT /v1/tensors/{name} with a Placement as JSON
// makes a tensor of the memory in a region.
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
  std::vector<std::string> tensors;  // tensors in the region
};
struct RegionList {
  std::vector<Region> items;
  std::optional<std::string> next_cursor;
};

struct GpuRegionRequest {
  std::string handle;  // from cudaIpcGetMemHandle, its 64 bytes in base64
  std::string device;  // by the worker's number: "cuda:0"
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

struct GpuRegion {
  std::string name;
  std::string device;
  std::uint64_t offset = 0;  // in the memory of the handle
  std::uint64_t bytes = 0;
  std::string state;                 // "ready", or "damaged" when the GPU is lost
  std::vector<std::string> tensors;  // tensors in the region
};

struct GpuRegionList {
  std::vector<GpuRegion> items;
  std::optional<std::string> next_cursor;
};

// Place of a tensor that is not in the worker's own memory.
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
