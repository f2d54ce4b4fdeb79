#include "http/api/tensors/client_memory.hpp"

#include "http/api/described.hpp"

namespace chorus::api {

BOOST_DESCRIBE_STRUCT(RegionRequest, (), (key, offset, bytes))
BOOST_DESCRIBE_STRUCT(Region, (), (name, key, offset, bytes, state, tensors))
BOOST_DESCRIBE_STRUCT(RegionList, (), (items, next_cursor))
BOOST_DESCRIBE_STRUCT(GpuRegionRequest, (), (handle, device, offset, bytes))
BOOST_DESCRIBE_STRUCT(GpuRegion, (), (name, device, offset, bytes, state, tensors))
BOOST_DESCRIBE_STRUCT(GpuRegionList, (), (items, next_cursor))
BOOST_DESCRIBE_STRUCT(Placement, (), (dtype, shape, shm))

constexpr auto required(RegionRequest const*) { return std::array<std::string_view, 2>{"key", "bytes"}; }
constexpr auto required(Region const*) { return std::array<std::string_view, 2>{"name", "key"}; }
constexpr auto required(RegionList const*) { return std::array<std::string_view, 1>{"items"}; }
constexpr auto required(GpuRegionRequest const*) {
  return std::array<std::string_view, 3>{"handle", "device", "bytes"};
}
constexpr auto required(GpuRegion const*) { return std::array<std::string_view, 2>{"name", "device"}; }
constexpr auto required(GpuRegionList const*) { return std::array<std::string_view, 1>{"items"}; }
constexpr auto required(Placement const*) { return std::array<std::string_view, 3>{"dtype", "shape", "shm"}; }

}  // namespace chorus::api

CHORUS_HTTP_MESSAGE(chorus::api::RegionRequest)
CHORUS_HTTP_MESSAGE(chorus::api::Region)
CHORUS_HTTP_MESSAGE(chorus::api::RegionList)
CHORUS_HTTP_MESSAGE(chorus::api::GpuRegionRequest)
CHORUS_HTTP_MESSAGE(chorus::api::GpuRegion)
CHORUS_HTTP_MESSAGE(chorus::api::GpuRegionList)
CHORUS_HTTP_MESSAGE(chorus::api::Placement)
