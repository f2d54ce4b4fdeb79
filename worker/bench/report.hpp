// What a benchmark prints: one JSON object per line, or a table for people.
#pragma once

#include <cstdint>
#include <string>

#include "worker/bench/contest.hpp"
#include "worker/bench/orders.hpp"

namespace chorus::bench {

struct Measurement {
  Task task;
  std::string algorithm;
  std::string link;
  std::uint32_t ranks = 0;
  Sample sample;
};

// What algbw is multiplied by, so that it tells how busy the links are, whatever the operation and the number of ranks.
[[nodiscard]] double busbw_factor(Op op, std::uint32_t ranks);

// {"op":..,"algorithm":..,"link":..,"ranks":..,"bytes":..,"dtype":..,"iterations":..,"p50_us":..,"p99_us":..,
//  "algbw_GBps":..,"busbw_GBps":..,"correct":..}. algbw is bytes over the median time; busbw is algbw * busbw_factor,
// as nccl-tests defines it; GB are 10^9 bytes.
[[nodiscard]] std::string to_json(Measurement const& measurement);

[[nodiscard]] std::string table_head();
[[nodiscard]] std::string table_row(Measurement const& measurement);

}  // namespace chorus::bench
