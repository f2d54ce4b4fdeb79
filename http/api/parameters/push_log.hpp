// The JSON parts of a shard's push log, beside the bytes: docs/reference/push_log.md. Only in files, never sent.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "http/api/parameters/parameters.hpp"

namespace chorus::api {

struct LoggedPush {
  std::string kind;  // "gradient", "rows", "value" or "clients"
  std::string client;
  std::string incarnation;
  std::uint64_t sequence = 0;
  std::optional<std::uint64_t> clock;
  std::string dtype;
  std::uint64_t rows = 0;
  std::optional<std::uint64_t> norm_bits;  // of an f64
  std::vector<std::string> clients;
};

struct LogArray {
  std::string name;
  std::uint64_t bytes = 0;
};

struct LogBase {
  std::string parameter;
  std::uint64_t begin = 0, end = 0;  // elements
  std::string dtype;
  ShardState state;
  std::vector<LogArray> arrays;
};

}  // namespace chorus::api
