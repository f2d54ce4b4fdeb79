// Output of a benchmark: one JSON object per line, or a table for people.
#pragma once

#include <cstdint>
#include <string>

#include "worker/bench/ranks/orders.hpp"
#include "worker/bench/timing/contest.hpp"

namespace chorus::bench {

struct Measurement {
  Task task;
  std::string algorithm;
  std::string link;
  std::uint32_t ranks = 0;
  Sample sample;
};

// Factor from algbw to busbw, which shows how busy the links are for any operation and number of ranks.
[[nodiscard]] double busbw_factor(Op op, std::uint32_t ranks);

// {"op":..,"algorithm":..,"link":..,"ranks":..,"bytes":..,"dtype":..,"iterations":..,"p50_us":..,"p99_us":..,
//  "algbw_GBps":..,"busbw_GBps":..,"correct":..}. algbw is bytes over the median time; busbw is algbw * busbw_factor,
// as nccl-tests defines it; GB are 10^9 bytes.
[[nodiscard]] std::string to_json(Measurement const& measurement);

[[nodiscard]] std::string table_head();
[[nodiscard]] std::string table_row(Measurement const& measurement);

}  // namespace chorus::bench
