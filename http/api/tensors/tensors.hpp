// Messages about a worker's tensors. The bytes of tensors travel as application/octet-stream.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "http/api/tensors/client_memory.hpp"

namespace chorus::api {

struct TensorInfo {
  std::string name;
  std::string dtype;
  std::vector<std::uint64_t> shape;
  std::uint64_t version = 0;
  std::uint64_t bytes = 0;
  std::string device = "cpu";
  std::optional<Place> shm;  // none: the worker's own memory
};

struct TensorList {
  std::vector<TensorInfo> items;
  std::optional<std::string> next_cursor;
};

}  // namespace chorus::api
