#include <doctest/doctest.h>
#include <spdlog/logger.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "metrics/catalogue/catalogue.hpp"
#include "metrics/coordinator_metrics.hpp"
#include "metrics/runs/bandwidth.hpp"
#include "metrics/standby_metrics.hpp"
#include "metrics/worker_metrics.hpp"

using namespace chorus;
using namespace chorus::metrics;
using namespace std::chrono_literals;

namespace {

Build const build{"1.2.3", "abc", "cc", "1.81", "80,90", "OpenSSL 3", "4"};

bool has_line(std::string const& text, std::string const& line) {
  return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
}

// A run of four ranks.
FinishedRun ring_run() {
  FinishedRun run{Op::all_reduce, "ring", "succeeded", "", 4, 4000, WireFormat::int8, 1024};
  run.statistics = {.duration = 500ms, .wait_seconds = 0.25, .steps = 10, .reduced = {65536, 0.125}};
  return run;
}

FinishedCollective collective() { return {"all_reduce", "ring", "succeeded", 0.5, 4096, 0.01, 0.2, 0.4}; }

LinkTraffic traffic(std::string peer, std::uint64_t sent) { return {std::move(peer), sent, 1, 0.5, 0.25, 1}; }

LeadershipScrape leader() { return {true, 7, {{"http://e0:2379", 20, 1, 0, 0}}}; }

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

TEST_CASE("the table of docs/reference/metrics.md is the catalogue; CHORUS_WRITE_DOCS=1 writes it anew") {
  auto const path = std::string(CHORUS_SOURCE_DIR) + "/docs/reference/metrics.md";
  std::ostringstream page;
  page << std::ifstream(path).rdbuf();
  auto const text = page.str();
  std::string const head = "|---|---|---|---|---|\n";
  auto const begin = text.find(head) + head.size();
  auto const end = text.find("\n\n", begin) + 1;
  if (std::getenv("CHORUS_WRITE_DOCS") != nullptr)
    std::ofstream(path) << text.substr(0, begin) << to_markdown() << text.substr(end);
  CHECK(text.substr(begin, end - begin) == to_markdown());
}

TEST_CASE("a worker exports exactly its metrics of the catalogue") {
  WorkerMetrics metrics(build, 1700000000, std::make_shared<LogCounter>());
  metrics.identified("w0", {"eu", "eu-1", "r7", "h3"});
  metrics.run_begun(Op::all_reduce);
  metrics.run_finished(ring_run());
  metrics.run_finished({Op::all_reduce, "ring", "failed", "peer_lost", 4, 4000});
  metrics.lease_renewal("renewed");
  metrics.request("GET", "/v1/tensors/{name}", 200, 0.001);
  metrics.parameter_pushed("gradient", "applied", 0.001);
  metrics.parameter_pulled("sent");
  metrics.parameter_staleness(1);
  metrics.parameter_waited("pull");
  metrics.parameter_nonfinite(3);
  metrics.parameter_logged(1, 100, 0.001);
  Scrape scrape;
  scrape.links = {traffic("w1", 1)};
  scrape.links[0].last_round_trip_seconds = 0.001;
  scrape.gpus = {{"cuda:0"}};
  scrape.state.certificate_expiry_seconds = 1800000000;
  scrape.state.memory = {1 << 30, 1 << 20};
  scrape.state.disk_waits = {{"logs", 0}};
  metrics.refused("missing");
  CHECK(exported_names(metrics.text(scrape)) == catalogue_names(&Metric::on_worker));
}

TEST_CASE("a coordinator exports exactly its metrics of the catalogue") {
  CoordinatorMetrics metrics(build, 1700000000, std::make_shared<LogCounter>());
  metrics.collective_planned("all_reduce", "ring", "model");
  metrics.collective_launched("all_reduce", 0.1);
  metrics.collective_finished(collective());
  metrics.collective_failed("all_reduce", "peer_lost");
  metrics.straggled("w1");
  metrics.checkpoints_begin(1);
  metrics.checkpoint_ended("succeeded", 0.5, 1700000001);
  metrics.journal_written(0.002);
  metrics.request("GET", "", 404, 0.001);
  CoordinatorScrape scrape;
  scrape.groups = {{"g", 3, 4, 3}};
  scrape.heartbeats = {{"w1", 1700000002}};
  scrape.journal.emplace();
  scrape.leadership = leader();
  scrape.checkpoint_interval_seconds = 300;
  scrape.state.certificate_expiry_seconds = 1800000000;
  scrape.state.memory = {1 << 30, 1 << 20};
  scrape.state.disk_waits = {{"journal", 0}};
  metrics.refused("missing");
  CHECK(exported_names(metrics.text(scrape)) == catalogue_names(&Metric::on_coordinator));
}

TEST_CASE("a coordinator alone says nothing of leaders, and one of several names its term and etcd's endpoints") {
  CoordinatorMetrics const metrics(build, 0);
  CoordinatorScrape scrape;
  CHECK(metrics.text(scrape).find("leader") == std::string::npos);
  CHECK(metrics.text(scrape).find("etcd") == std::string::npos);
  scrape.leadership = leader();
  auto const text = metrics.text(scrape);
  CHECK(has_line(text, "chorus_coordinator_leading 1"));
  CHECK(has_line(text, "chorus_leadership_term 7"));
  CHECK(has_line(text, R"(chorus_etcd_requests_total{endpoint="http://e0:2379",result="answered"} 20)"));
  CHECK(has_line(text, R"(chorus_etcd_requests_total{endpoint="http://e0:2379",result="unreachable"} 1)"));
}

TEST_CASE("a standby exports the process, its requests and who leads, and nothing that is the leader's alone") {
  StandbyMetrics metrics(build, 1700000000, std::make_shared<LogCounter>());
  metrics.request("GET", "/readyz", 503, 0.001);
  metrics.refused("missing");
  metrics.loop_lag(0.001);
  auto const text = metrics.text({}, {false, 7, {{"http://e0:2379", 20, 0, 0, 0}}});
  CHECK(has_line(text, "chorus_coordinator_leading 0"));
  CHECK(has_line(text, "chorus_leadership_term 7"));
  CHECK(has_line(text, "chorus_ready 0"));
  CHECK(has_line(text, "process_start_time_seconds 1700000000"));
  CHECK(has_line(text, R"(chorus_auth_refusals_total{reason="missing"} 1)"));
  CHECK(
      has_line(text, R"(chorus_http_request_duration_seconds_count{code_class="5xx",method="GET",route="/readyz"} 1)"));
  auto const known = catalogue_names(&Metric::on_coordinator);
  for (auto const& name : exported_names(text)) {
    CHECK_MESSAGE(known.contains(name), name);
    for (auto const* const of_the_leader : {"chorus_collective", "chorus_member", "chorus_group", "chorus_journal",
                                            "chorus_lease", "chorus_event_s", "chorus_parameters"})
      CHECK_FALSE_MESSAGE(name.starts_with(of_the_leader), name);
  }
  CHECK(metrics.text({}, {}).find("chorus_leadership_term") == std::string::npos);  // no leader is known
}

TEST_CASE("a run that succeeded is counted, timed per step and rated as nccl-tests does") {
  WorkerMetrics metrics(build, 0);
  metrics.run_finished(ring_run());
  auto const text = metrics.text({});
  CHECK(has_line(text, R"(chorus_collectives_total{op="all_reduce",algorithm="ring",result="succeeded"} 1)"));
  std::string const labels = R"({op="all_reduce",algorithm="ring",size="le_4KiB"} )";
  CHECK(has_line(text, "chorus_collective_duration_seconds_sum" + labels + "0.5"));
  CHECK(has_line(text, "chorus_collective_bus_bandwidth_bytes_per_second_sum" + labels + "12000"));
  CHECK(has_line(text, "chorus_collective_algorithm_bandwidth_bytes_per_second_sum" + labels + "8000"));
  CHECK(has_line(text, R"(chorus_collective_step_duration_seconds_sum{op="all_reduce",algorithm="ring"} 0.05)"));
  CHECK(has_line(text, R"(chorus_reduce_bytes_total{device="cpu",dtype="f32"} 65536)"));
  CHECK(has_line(text, R"(chorus_compressed_bytes_total{format="int8"} 4000)"));
  CHECK(has_line(text, R"(chorus_compressed_wire_bytes_total{format="int8"} 1024)"));
  CHECK(has_line(text, R"(chorus_reduce_busy_seconds_total{device="cpu",dtype="f32"} 0.125)"));
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
  CHECK(coordinator.text({}).find("chorus_checkpoint_timestamp_seconds") == std::string::npos);
}

TEST_CASE("a run that failed is counted by kind and enters no histogram") {
  WorkerMetrics metrics(build, 0);
  metrics.run_finished({Op::all_reduce, "ring", "failed", "peer_lost", 4, 4000});
  auto const text = metrics.text({});
  CHECK(has_line(text, R"(chorus_collective_errors_total{op="all_reduce",kind="peer_lost"} 1)"));
  CHECK(text.find("chorus_collective_duration_seconds") == std::string::npos);
}

TEST_CASE("links are read at the scrape, one series per peer and direction") {
  WorkerMetrics metrics(build, 0);
  auto const text = metrics.text({{traffic("w1", 7)}});
  CHECK(has_line(text, R"(chorus_link_sent_bytes_total{peer="w1"} 7)"));
  CHECK(has_line(text, R"(chorus_link_busy_seconds_total{peer="w1",direction="sent"} 0.5)"));
  CHECK(has_line(text, R"(chorus_link_busy_seconds_total{peer="w1",direction="received"} 0.25)"));
  CHECK(has_line(text, R"(chorus_link_connections{peer="w1",link="tcp"} 1)"));
}

TEST_CASE("a GPU has series of its own, and its reductions lie beside those of the processor") {
  WorkerMetrics metrics(build, 0);
  auto run = ring_run();
  run.gpu_reduced = {1000, 0.5};
  metrics.run_finished(run);
  Scrape scrape;
  GpuState gpu{"cuda:1"};
  gpu.out_bytes = 7;
  gpu.nccl_bytes = 9;
  gpu.stepped_bytes = 11;
  gpu.compute_seconds = 0.25;
  gpu.arena_used_bytes = 3;
  gpu.is_lost = true;
  scrape.gpus = {gpu};
  auto const text = metrics.text(scrape);
  CHECK(has_line(text, R"(chorus_gpu_copied_bytes_total{device="cuda:1",direction="out"} 7)"));
  CHECK(has_line(text, R"(chorus_gpu_copied_bytes_total{device="cuda:1",direction="nccl"} 9)"));
  CHECK(has_line(text, R"(chorus_gpu_stepped_bytes_total{device="cuda:1"} 11)"));
  CHECK(has_line(text, R"(chorus_gpu_busy_seconds_total{device="cuda:1",queue="compute"} 0.25)"));
  CHECK(has_line(text, R"(chorus_gpu_arena_used_bytes{device="cuda:1"} 3)"));
  CHECK(has_line(text, R"(chorus_gpu_lost{device="cuda:1"} 1)"));
  CHECK(has_line(text, R"(chorus_reduce_bytes_total{device="cuda",dtype="f32"} 1000)"));
  CHECK(has_line(text, R"(chorus_reduce_bytes_total{device="cpu",dtype="f32"} 65536)"));
  CHECK(metrics.text({}).find("chorus_gpu_lost{") == std::string::npos);
}

TEST_CASE("the 65th peer is folded into other, and a peer with a series keeps it") {
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
  auto const text = metrics.text({});
  CHECK(has_line(text, "chorus_metrics_folded_families 1"));
  CHECK(has_line(text, R"(chorus_collective_errors_total{kind="other",op="other"} 4488)"));
  CHECK(text.find("kind511") != std::string::npos);
  CHECK(text.find("kind512") == std::string::npos);
}

TEST_CASE("the coordinator shows members, epochs and requests") {
  CoordinatorMetrics metrics(build, 0);
  metrics.members(3, 1);
  metrics.epoch_changed("members");
  metrics.request("GET", "/v1/groups/{name}", 404, 0.004);
  CoordinatorScrape scrape;
  scrape.state.http_connections = 5;
  scrape.groups = {{"g", 3, 4, 2}};
  scrape.parameters = {{"ready", 7}, {"unavailable", 1}};
  auto const text = metrics.text(scrape);
  CHECK(has_line(text, R"(chorus_members{state="ready"} 3)"));
  CHECK(has_line(text, R"(chorus_members{state="lost"} 1)"));
  CHECK(has_line(text, R"(chorus_membership_changes_total{reason="members"} 1)"));
  CHECK(has_line(text, R"(chorus_group_members{group="g",state="expected"} 4)"));
  CHECK(has_line(text, R"(chorus_group_members{group="g",state="ready"} 2)"));
  CHECK(has_line(text, R"(chorus_group_epoch{group="g"} 3)"));
  CHECK(has_line(text, R"(chorus_parameters{state="ready"} 7)"));
  CHECK(has_line(text, R"(chorus_parameters{state="unavailable"} 1)"));
  CHECK(has_line(text, R"(chorus_parameters{state="lost"} 0)"));
  CHECK(has_line(text, "chorus_http_connections 5"));
  CHECK(text.find(R"(code_class="4xx",method="GET",route="/v1/groups/{name}",le="0.005"} 1)") != std::string::npos);
}

TEST_CASE("workers that come late have series of their own, up to a limit") {
  CoordinatorMetrics metrics(build, 0);
  CoordinatorScrape const scrape;
  for (int i = 0; i < 65; ++i) metrics.straggled("w" + std::to_string(i));
  CHECK(has_line(metrics.text(scrape), R"(chorus_collective_straggler_total{worker="w63"} 1)"));
  CHECK(has_line(metrics.text(scrape), R"(chorus_collective_straggler_total{worker="other"} 1)"));
}

TEST_CASE("stalled collectives are shown for every operation, also when there are none") {
  CoordinatorMetrics metrics(build, 0);
  CoordinatorScrape const scrape;
  metrics.collectives_stalled("all_reduce", 2);
  CHECK(has_line(metrics.text(scrape), R"(chorus_collectives_stalled{op="all_reduce"} 2)"));
  CHECK(has_line(metrics.text(scrape), R"(chorus_collectives_stalled{op="barrier"} 0)"));
}

TEST_CASE("a value lies in the bucket whose bound it is, as in every Prometheus histogram") {
  WorkerMetrics metrics(build, 0);
  for (auto const duration : {0us, 100us, 110us, 200us, 400us, 1'000'000'000us}) {
    auto run = ring_run();
    run.statistics.duration = duration;
    metrics.run_finished(run);
  }
  auto const text = metrics.text({});
  std::string const bucket =
      R"(chorus_collective_duration_seconds_bucket{op="all_reduce",algorithm="ring",size="le_4KiB",le=)";
  CHECK(has_line(text, bucket + R"("0.0001"} 2)"));
  CHECK(has_line(text, bucket + R"("0.0002"} 4)"));
  CHECK(has_line(text, bucket + R"("0.0004"} 5)"));
  CHECK(has_line(text, bucket + R"("104.8576"} 5)"));
  CHECK(has_line(text, bucket + R"("+Inf"} 6)"));
}

TEST_CASE("the counts of a ledger stay when its holder has gone") {
  WorkerMetrics metrics(build, 0);
  std::string const succeeded = R"(chorus_collectives_total{op="all_reduce",algorithm="ring",result="succeeded"} )";
  {
    auto const ledger = metrics.open_ledger();
    ledger->begun(Op::all_reduce);
    CHECK(has_line(metrics.text({}), R"(chorus_collectives_active{op="all_reduce"} 1)"));
    ledger->ended(ring_run());
    metrics.run_finished(ring_run());
    CHECK(has_line(metrics.text({}), succeeded + "2"));
  }
  CHECK(has_line(metrics.text({}), succeeded + "2"));
  CHECK(has_line(metrics.text({}), succeeded + "2"));
}

TEST_CASE("lines of the log are counted by level") {
  auto const counter = std::make_shared<LogCounter>();
  spdlog::logger log("test", counter);
  CHECK(log_counter_of(log) == counter);
  log.warn("one");
  log.warn("two");
  log.debug("below the level");
  WorkerMetrics metrics(build, 0, counter);
  CHECK(has_line(metrics.text({}), R"(chorus_log_messages_total{level="warning"} 2)"));
  CHECK(has_line(metrics.text({}), R"(chorus_log_messages_total{level="debug"} 0)"));
}

TEST_CASE("requests that no handler saw are counted by reason") {
  WorkerMetrics metrics(build, 0);
  metrics.request("", "", 503, 0);
  metrics.request("", "", 408, 5);
  metrics.request("DELETE", "/metrics", 405, 0);
  metrics.request("GET", "/v1/tensors/{name}", 404, 0);
  auto const text = metrics.text({});
  CHECK(has_line(text, R"(chorus_http_rejected_total{reason="overload"} 1)"));
  CHECK(has_line(text, R"(chorus_http_rejected_total{reason="slow_header"} 1)"));
  CHECK(has_line(text, R"(chorus_http_rejected_total{reason="method_not_allowed"} 1)"));
  CHECK(has_line(text, R"(chorus_http_rejected_total{reason="not_found"} 0)"));
}

TEST_CASE("a prediction that was half of the measurement is wrong by half") {
  CoordinatorMetrics metrics(build, 0);
  metrics.collective_finished(collective());
  CHECK(has_line(metrics.text({}), R"(chorus_plan_predicted_error_ratio_sum{op="all_reduce"} 0.5)"));
}

TEST_CASE("the build is a label") {
  CoordinatorMetrics metrics(build, 0);
  CHECK(has_line(metrics.text({}),
                 R"(chorus_build_info{boost="1.81",commit="abc",compiler="cc",cuda="80,90",plan_generator="4",)"
                 R"(tls="OpenSSL 3",version="1.2.3"} 1)"));
}

TEST_CASE("bus factors are those of nccl-tests") {
  CHECK(bus_factor(Op::all_reduce, 4) == 1.5);
  CHECK(bus_factor(Op::all_gather, 4) == 0.75);
  CHECK(bus_factor(Op::broadcast, 4) == 1);
  CHECK(bus_factor(Op::all_reduce, 1) == 0);
  CHECK(bus_factor(Op::barrier, 4) == 0);
}
