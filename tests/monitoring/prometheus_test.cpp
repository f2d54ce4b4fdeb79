// A real Prometheus scrapes a live group under work: every expression of every panel, rule and alert has data.
#include <doctest/doctest.h>

#include "tests/monitoring/expressions.hpp"
#include "tests/monitoring/gpu_exporter.hpp"
#include "tests/monitoring/prometheus.hpp"
#include "tests/monitoring/several_coordinators.hpp"
#include "tests/monitoring/work.hpp"

using namespace chorus::testing;

namespace {

// What needs something that a test cannot have, and why.
struct Excused {
  std::string what, why;
};
Excused const certificates{"chorus_tls_certificate_expiry_timestamp_seconds",
                           "the services of this test speak plain HTTP"};

constexpr std::chrono::seconds patience{60};  // on a machine that does other work

std::string const metrics_directory = std::string(CHORUS_SOURCE_DIR) + "/metrics";

void say(Excused const& excused) { MESSAGE("excused: ", excused.what, ": ", excused.why); }

// All rules as Prometheus has read them.
std::vector<Question> rule_questions(Prometheus const& prometheus) {
  std::vector<Question> questions;
  auto const rules = prometheus.api("rules");
  for (auto const& group : rules.at("groups").as_array())
    for (auto const& rule : group.at("rules").as_array()) {
      auto const name = std::string(rule.at("name").as_string());
      CHECK_MESSAGE(rule.at("health") == "ok", name);
      auto const query = std::string(rule.at("query").as_string());
      if (rule.at("type") == "recording")
        questions.push_back({"rule " + name, name});
      else
        questions.push_back({"alert " + name, without_condition(query)});
    }
  return questions;
}

void check(Prometheus const& prometheus, std::vector<Question> const& questions) {
  for (auto const& question : questions) {
    if (question.expression.find(certificates.what) != std::string::npos) continue;
    bool const has_data = eventually([&] { return prometheus.knows(question.expression); }, std::chrono::seconds(10));
    std::string refusal;
    if (!has_data) static_cast<void>(prometheus.ask(question.expression, refusal));
    CHECK_MESSAGE(has_data, question.asked_by, ": ", question.expression, " ", refusal);
  }
}

bool is_clean(Service const& service) {
  ScratchDirectory const directory;
  write_file(directory / "metrics", service.get("/metrics").body);
  Process promtool({"/bin/sh", "-c", "promtool check metrics <" + directory / "metrics" + " 2>&1"});
  auto const said = promtool.read_all();
  CHECK_MESSAGE(said.empty(), service.id, ": ", said);
  return promtool.wait() == 0;
}

bool is_alerted(Prometheus const& prometheus, std::string const& labels) {
  return eventually([&] { return prometheus.knows("ALERTS{" + labels + "}"); }, patience);
}

}  // namespace

TEST_CASE("a live group under work: every expression of every panel, rule and alert has data") {
  Work work;
  GpuExporter const gpus;
  auto urls = work.worker_urls();
  urls.push_back(gpus.url());
  SeveralCoordinators several;
  auto coordinator_urls = several.urls();
  coordinator_urls.push_back(work.coordinator().url);
  Prometheus const prometheus(coordinator_urls, urls);
  REQUIRE(eventually([&] { return prometheus.knows("sum(up) == 8"); }, patience));
  auto const until = std::chrono::steady_clock::now() + std::chrono::seconds(8);
  while (std::chrono::steady_clock::now() < until) {
    work.round();
    work.straggle();
    several.round();
  }
  work.stop_one();

  say(certificates);
  check(prometheus, rule_questions(prometheus));
  check(prometheus, dashboard_questions(metrics_directory + "/dashboards"));

  CHECK(is_alerted(prometheus, R"(alertname="ChorusUncleanShutdown",alertstate="firing")"));
  CHECK(is_alerted(prometheus, R"(alertname="ChorusMembersMissing",alertstate="pending",group="g")"));
  CHECK(is_alerted(prometheus, R"(alertname="ChorusTargetDown",alertstate="pending",worker="w3")"));
  CHECK(prometheus.knows(R"(job_worker:chorus_collective_straggler:share15m{worker="w3"} > 0)"));
  CHECK(prometheus.knows("sum(chorus_coordinator_leading) == 1 and count(chorus_coordinator_leading) == 2"));
  CHECK(work.coordinator().get("/").status == 200);  // where dashboards lead to

  CHECK(is_clean(work.coordinator()));
  for (std::size_t i = 0; i + 1 < Work::workers; ++i) CHECK(is_clean(work.worker(i)));
  work.end_stopped();
}

TEST_CASE("an alert's condition is taken away, what it compares stays") {
  CHECK(without_condition("(up{job=~\"a\"} == 0) * on (job) b") == "(up{job=~\"a\"}) * on (job) b");
  CHECK(without_condition("a > 2 * (b offset 1h)") == "a * (b)");
  CHECK(without_condition("a{kind!=\"x\"} == 0 unless b == 1") == "a{kind!=\"x\"} and b");
}
