#include <doctest/doctest.h>

#include "worker/bench/options.hpp"
#include "worker/bench/report.hpp"

using namespace chorus;
using namespace chorus::bench;

TEST_CASE("sizes are numbers with units") {
  CHECK(parse_sizes("4,1K,1M,64M,1G").value() ==
        std::vector<std::uint64_t>{4, 1024, 1 << 20, 64 << 20, std::uint64_t{1} << 30});
  for (auto const* wrong :
       {"", "4,", ",4", "0", "-1", "4k", "1.5M", "M", "1T", "99999999999999999999", "17179869184G", "4 "})
    CHECK_MESSAGE(parse_sizes(wrong).has_error(), wrong);
  CHECK(readable_size(4) == "4 B");
  CHECK(readable_size(1536) == "1536 B");
  CHECK(readable_size(64 << 20) == "64 MiB");
}

TEST_CASE("percentiles are values that were measured") {
  CHECK(percentile({5}, 0.5) == 5);
  CHECK(percentile({3, 1, 2}, 0.5) == 2);
  CHECK(percentile({4, 3, 2, 1}, 0.5) == 2);
  CHECK(percentile({4, 3, 2, 1}, 0.99) == 4);
  CHECK(percentile({4, 3, 2, 1}, 1) == 4);
}

TEST_CASE("a measurement is one line of JSON, with the bus bandwidth of nccl-tests") {
  Measurement m;
  m.op = "all_reduce";
  m.algorithm = "ring";
  m.link = "tcp";
  m.ranks = 4;
  m.bytes = 1000000;
  m.dtype = "f32";
  m.seconds = {0.001, 0.002, 0.0005};
  m.correct = true;
  CHECK(to_json(m) ==
        R"({"op":"all_reduce","algorithm":"ring","link":"tcp","ranks":4,"bytes":1000000,"dtype":"f32","iterations":3,)"
        R"("p50_us":1000.00,"p99_us":2000.00,"algbw_GBps":1,"busbw_GBps":1.5,"correct":true})");
}
