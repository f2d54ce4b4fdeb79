// What a benchmark prints: one JSON object per line, or a table for people.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace chorus::bench {

struct Measurement {
  std::string op;
  std::string algorithm;
  std::string link;
  std::uint32_t ranks = 0;
  std::uint64_t bytes = 0;
  std::string dtype;
  std::vector<double> seconds;  // per iteration, the slowest rank's
  bool correct = false;
};

// {"op":..,"algorithm":..,"link":..,"ranks":..,"bytes":..,"dtype":..,"iterations":..,"p50_us":..,"p99_us":..,
//  "algbw_GBps":..,"busbw_GBps":..,"correct":..}. algbw is bytes over the median time; busbw is algbw * 2 (p-1) / p, as
// nccl-tests defines it for all_reduce; GB are 10^9 bytes.
[[nodiscard]] std::string to_json(Measurement const& measurement);

[[nodiscard]] std::string table_head();
[[nodiscard]] std::string table_row(Measurement const& measurement);

// The nearest-rank percentile, 0 < fraction <= 1; values are not empty.
[[nodiscard]] double percentile(std::vector<double> values, double fraction);

}  // namespace chorus::bench
