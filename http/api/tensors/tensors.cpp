#include "http/api/tensors/tensors.hpp"

#include "http/api/described.hpp"

namespace chorus::api {

BOOST_DESCRIBE_STRUCT(TensorInfo, (), (name, dtype, shape, version, bytes, device, shm))
BOOST_DESCRIBE_STRUCT(TensorList, (), (items, next_cursor))

constexpr auto required(TensorInfo const*) { return std::array<std::string_view, 2>{"name", "dtype"}; }
constexpr auto required(TensorList const*) { return std::array<std::string_view, 1>{"items"}; }

}  // namespace chorus::api

CHORUS_HTTP_MESSAGE(chorus::api::TensorInfo)
CHORUS_HTTP_MESSAGE(chorus::api::TensorList)
