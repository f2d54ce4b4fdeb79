// What chorus-bench is asked to measure.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/core/dtype.hpp"
#include "collectives/core/result.hpp"

namespace chorus::bench {

struct Options {
  std::string op = "all_reduce";
  std::uint32_t ranks = 2;
  std::string link = "auto";
  std::vector<std::uint64_t> sizes;  // bytes of one rank's vector
  std::string algorithm = "auto";
  Dtype dtype = Dtype::f32;
  std::uint32_t iterations_max = 10000;
  std::uint32_t warmup = 5;
  std::uint64_t segment_bytes = 0;     // 0: the data plane's default
  std::uint32_t window = 0;            // likewise
  std::uint64_t eager_bytes = 0;       // likewise
  std::chrono::microseconds spin{-1};  // -1: likewise
  bool json = false;
  bool ceiling = false;  // the machine's TCP, without Chorus
};

// "4,1K,1M,64M": K, M and G are powers of 1024. Errors: std::errc::invalid_argument with the part that is wrong.
[[nodiscard]] Result<std::vector<std::uint64_t>> parse_sizes(std::string_view text);

// "64 MiB"
[[nodiscard]] std::string readable_size(std::uint64_t bytes);

}  // namespace chorus::bench
