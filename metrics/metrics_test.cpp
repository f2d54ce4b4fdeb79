#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "metrics/bandwidth.hpp"
#include "metrics/catalogue.hpp"
#include "metrics/coordinator_metrics.hpp"
#include "metrics/worker_metrics.hpp"

using namespace chorus;
using namespace chorus::metrics;

namespace {

Build const build{"1.2.3", "cc", "1.81"};

bool has_line(std::string const& text, std::string const& line) {
  return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
}

FinishedRun ring_run() { return {Op::all_reduce, "ring", "succeeded", "", 4, 4000, 0.5, 10}; }

LinkTraffic traffic(std::string peer, std::uint64_t sent) { return {std::move(peer), sent, 1, 0.5, 0.25, 1}; }

std::set<std::string> exported_names(std::string const& text) {
  std::set<std::string> names;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("# TYPE ")) names.insert(line.substr(7, line.find(' ', 7) - 7));
  return names;
}

std::set<std::string> catalogue_names(bool Metric::*exported_by) {
  std::set<std::string> names;
  for (auto const& metric : catalogue())
    if (metric.*exported_by) names.insert(std::string(metric.name));
  return names;
}

}  // namespace

TEST_CASE("the catalogue keeps the naming rules of Prometheus") {
  std::set<std::string_view> names;
  for (auto const& metric : catalogue()) {
    CAPTURE(std::string(metric.name));
    CHECK(names.insert(metric.name).second);
    CHECK(metric.name.ends_with("_total") == (metric.type == Type::counter));
    CHECK((metric.buckets != Buckets::none) == (metric.type == Type::histogram));
    CHECK(metric.help.ends_with("."));
    CHECK((metric.on_worker || metric.on_coordinator));
  }
}

TEST_CASE("the buckets rise") {
  for (auto buckets : {Buckets::duration_seconds, Buckets::step_seconds, Buckets::http_seconds, Buckets::payload_bytes,
                       Buckets::bandwidth_bytes_per_second}) {
    auto const upper = bounds(buckets);
    REQUIRE(upper.size() > 10);
    for (std::size_t i = 1; i < upper.size(); ++i) CHECK(upper[i - 1] < upper[i]);
  }
}

TEST_CASE("docs/metrics.md is the catalogue; CHORUS_WRITE_DOCS=1 writes it anew") {
  auto const path = std::string(CHORUS_SOURCE_DIR) + "/docs/metrics.md";
  if (std::getenv("CHORUS_WRITE_DOCS") != nullptr) std::ofstream(path) << to_markdown();
  std::ostringstream page;
  page << std::ifstream(path).rdbuf();
  CHECK(page.str() == to_markdown());
}

TEST_CASE("a worker exports exactly what the catalogue says of it") {
  WorkerMetrics metrics(build, 1700000000);
  metrics.run_finished(ring_run());
  metrics.run_finished({Op::all_reduce, "ring", "failed", "peer_lost", 4, 4000, 0.5, 3});
  metrics.lease_renewal("renewed");
  metrics.request("GET", "/v1/tensors/{name}", 200, 0.001);
  metrics.parameter_pushed("gradient", "applied", 0.001);
  metrics.parameter_pulled("sent");
  metrics.parameter_staleness(1);
  metrics.parameter_waited("pull");
  metrics.parameter_nonfinite(3);
  CHECK(exported_names(metrics.text({{traffic("w1", 1)}, 1, 4, 1, {}, {}, 0})) == catalogue_names(&Metric::on_worker));
}

TEST_CASE("a coordinator exports exactly what the catalogue says of it") {
  CoordinatorMetrics metrics(build, 1700000000);
  metrics.collective_finished("all_reduce", "ring", "succeeded", 0.5, 4096, 0.01);
  metrics.collective_failed("all_reduce", "peer_lost");
  metrics.straggled("w1");
  metrics.checkpoint_ended("succeeded", 0.5, 1700000001);
  metrics.request("GET", "", 404, 0.001);
  CHECK(exported_names(metrics.text()) == catalogue_names(&Metric::on_coordinator));
}

TEST_CASE("a run that succeeded is counted, timed per step and rated as nccl-tests does") {
  WorkerMetrics metrics(build, 0);
  metrics.run_finished(ring_run());
  auto const text = metrics.text({});
  CHECK(has_line(text, R"(chorus_collectives_total{algorithm="ring",op="all_reduce",result="succeeded"} 1)"));
  CHECK(has_line(text, R"(chorus_collective_duration_seconds_sum{algorithm="ring",op="all_reduce"} 0.5)"));
  CHECK(has_line(text, R"(chorus_collective_step_duration_seconds_sum{algorithm="ring",op="all_reduce"} 0.05)"));
  CHECK(has_line(text,
                 R"(chorus_collective_bus_bandwidth_bytes_per_second_sum{algorithm="ring",op="all_reduce"} 12000)"));
}

TEST_CASE("only pushes that were applied have a duration, and only checkpoints that were made an age") {
  WorkerMetrics worker(build, 0);
  worker.parameter_pushed("rows", "duplicate", 0.25);
  worker.parameter_pushed("rows", "applied", 0.5);
  auto const text = worker.text({});
  CHECK(has_line(text, R"(chorus_parameter_pushes_total{kind="rows",result="duplicate"} 1)"));
  CHECK(has_line(text, R"(chorus_parameter_push_duration_seconds_sum{kind="rows"} 0.5)"));
  CoordinatorMetrics coordinator(build, 0);
  coordinator.checkpoint_ended("failed", 3, 5);
  CHECK(coordinator.text().find("chorus_checkpoint_timestamp_seconds") == std::string::npos);
}

TEST_CASE("a run that failed is counted by kind and enters no histogram") {
  WorkerMetrics metrics(build, 0);
  metrics.run_finished({Op::all_reduce, "ring", "failed", "peer_lost", 4, 4000, 0.5, 3});
  auto const text = metrics.text({});
  CHECK(has_line(text, R"(chorus_collective_errors_total{kind="peer_lost",op="all_reduce"} 1)"));
  CHECK(text.find("chorus_collective_duration_seconds") == std::string::npos);
}

TEST_CASE("links are read at the scrape, one series per peer and direction") {
  WorkerMetrics metrics(build, 0);
  auto const text = metrics.text({{traffic("w1", 7)}, 0, 0, 0});
  CHECK(has_line(text, R"(chorus_link_sent_bytes_total{peer="w1"} 7)"));
  CHECK(has_line(text, R"(chorus_link_busy_seconds_total{peer="w1",direction="sent"} 0.5)"));
  CHECK(has_line(text, R"(chorus_link_busy_seconds_total{peer="w1",direction="received"} 0.25)"));
  CHECK(has_line(text, R"(chorus_link_connections{peer="w1",link="tcp"} 1)"));
}

TEST_CASE("the 65th peer is folded into other, and who has a series keeps it") {
  WorkerMetrics metrics(build, 0);
  Scrape scrape;
  for (int i = 0; i < 64; ++i) scrape.links.push_back(traffic("w" + std::to_string(i), 1));
  CHECK(metrics.text(scrape).find("{peer=\"other\"") == std::string::npos);
  scrape.links.insert(scrape.links.begin(), {traffic("late1", 10), traffic("late2", 20)});
  auto const text = metrics.text(scrape);
  CHECK(has_line(text, R"(chorus_link_sent_bytes_total{peer="other"} 30)"));
  CHECK(has_line(text, R"(chorus_link_sent_bytes_total{peer="w63"} 1)"));
  CHECK(text.find("late1") == std::string::npos);
}

TEST_CASE("a worker that calls itself other makes no second series of that name") {
  WorkerMetrics metrics(build, 0);
  Scrape scrape;
  for (int i = 0; i < 65; ++i) scrape.links.push_back(traffic("w" + std::to_string(i), 1));
  scrape.links.insert(scrape.links.begin(), traffic("other", 5));
  CHECK(has_line(metrics.text(scrape), R"(chorus_link_sent_bytes_total{peer="other"} 6)"));
}

TEST_CASE("forged label values end in other instead of in ever more series") {
  CoordinatorMetrics metrics(build, 0);
  for (int i = 0; i < 5000; ++i) metrics.collective_failed("all_reduce", "kind" + std::to_string(i));
  auto const text = metrics.text();
  CHECK(has_line(text, R"(chorus_collective_errors_total{kind="other",op="other"} 4488)"));
  CHECK(text.find("kind511") != std::string::npos);
  CHECK(text.find("kind512") == std::string::npos);
}

TEST_CASE("the coordinator shows members, epochs and requests") {
  CoordinatorMetrics metrics(build, 0);
  metrics.members(3, 1);
  metrics.epoch_changed();
  metrics.request("GET", "/v1/groups/{name}", 404, 0.004);
  metrics.http_connections(5);
  auto const text = metrics.text();
  CHECK(has_line(text, R"(chorus_members{state="ready"} 3)"));
  CHECK(has_line(text, R"(chorus_members{state="lost"} 1)"));
  CHECK(has_line(text, "chorus_membership_changes_total 1"));
  CHECK(has_line(text, "chorus_http_connections 5"));
  CHECK(text.find(R"(code_class="4xx",method="GET",route="/v1/groups/{name}",le="0.005"} 1)") != std::string::npos);
}

TEST_CASE("who is late by a tenth of a collective and more than 10 ms is a straggler") {
  CHECK(is_straggler(0.2, 1));
  CHECK_FALSE(is_straggler(0.05, 1));
  CHECK_FALSE(is_straggler(0.005, 0.006));
  CoordinatorMetrics metrics(build, 0);
  for (int i = 0; i < 65; ++i) metrics.straggled("w" + std::to_string(i));
  CHECK(has_line(metrics.text(), R"(chorus_collective_straggler_total{worker="w63"} 1)"));
  CHECK(has_line(metrics.text(), R"(chorus_collective_straggler_total{worker="other"} 1)"));
}

TEST_CASE("stalled collectives are shown for every operation, also when there are none") {
  CoordinatorMetrics metrics(build, 0);
  metrics.collectives_stalled("all_reduce", 2);
  CHECK(has_line(metrics.text(), R"(chorus_collectives_stalled{op="all_reduce"} 2)"));
  CHECK(has_line(metrics.text(), R"(chorus_collectives_stalled{op="barrier"} 0)"));
}

TEST_CASE("the build is a label") {
  CoordinatorMetrics metrics(build, 0);
  CHECK(has_line(metrics.text(), R"(chorus_build_info{boost="1.81",compiler="cc",version="1.2.3"} 1)"));
  CHECK(this_build().version.find('.') != std::string::npos);
}

TEST_CASE("bus factors are those of nccl-tests") {
  CHECK(bus_factor(Op::all_reduce, 4) == 1.5);
  CHECK(bus_factor(Op::all_gather, 4) == 0.75);
  CHECK(bus_factor(Op::broadcast, 4) == 1);
  CHECK(bus_factor(Op::all_reduce, 1) == 0);
  CHECK(bus_factor(Op::barrier, 4) == 0);
}
