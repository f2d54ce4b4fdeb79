// The increase of a series that begins with its first event is 0: counters that alerts ask begin with 0.
#include <doctest/doctest.h>

#include <string>

#include "collectives/core/op.hpp"
#include "metrics/coordinator_metrics.hpp"

using namespace chorus;
using namespace chorus::metrics;

namespace {

bool shows(std::string const& text, std::string const& line) {
  return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
}

}  // namespace

TEST_CASE("the first result that differs between ranks raises a counter that was there before") {
  CoordinatorMetrics metrics({}, 0);
  auto const series = [](Op op) {
    return R"(chorus_collective_errors_total{kind="digest_mismatch",op=")" + std::string(name(op)) + R"("} )";
  };
  for (auto const op : all_ops) CHECK_MESSAGE(shows(metrics.text({}), series(op) + "0"), name(op));
  metrics.collective_failed(name(Op::all_reduce), "digest_mismatch");
  CHECK(shows(metrics.text({}), series(Op::all_reduce) + "1"));
}

TEST_CASE("a scheduled checkpoint that finds no parameter moves the time of the last one, and neither result") {
  CoordinatorMetrics metrics({}, 0);
  CHECK(metrics.text({}).find("chorus_checkpoint_timestamp_seconds ") == std::string::npos);
  metrics.checkpoint_needless(100);
  CHECK(shows(metrics.text({}), "chorus_checkpoint_timestamp_seconds 100"));
  for (std::string const result : {"succeeded", "failed"})
    CHECK(shows(metrics.text({}), "chorus_checkpoint_duration_seconds_count{result=\"" + result + "\"} 0"));
}

TEST_CASE("a coordinator without a checkpoint says since when it could have made one") {
  CoordinatorMetrics metrics({}, 5);
  metrics.checkpoints_begin(70);
  CHECK(shows(metrics.text({}), "chorus_checkpoint_schedule_timestamp_seconds 70"));
}
