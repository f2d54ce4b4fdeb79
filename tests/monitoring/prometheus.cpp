#include "tests/monitoring/prometheus.hpp"

#include <httplib.h>

#include <algorithm>
#include <stdexcept>

namespace chorus::testing {
namespace {

std::string host_of(std::string const& url) { return url.substr(std::string("http://").size()); }

std::string job(std::string const& name, std::vector<std::string> const& urls) {
  std::string text = "  - job_name: " + name + "\n    static_configs:\n      - targets:\n";
  for (auto const& url : urls) text += "          - '" + host_of(url) + "'\n";
  return text;
}

// As they are, but evaluated every second.
std::string impatient(std::string rules) {
  std::string const interval = "    interval: 15s\n";
  if (auto const at = rules.find(interval); at != std::string::npos) rules.erase(at, interval.size());
  return rules;
}

std::vector<std::string> arguments(ScratchDirectory const& directory, HeldPort const& port,
                                   std::vector<std::string> const& coordinators,
                                   std::vector<std::string> const& workers) {
  for (auto const* file : {"recording.yml", "alerts.yml"})
    write_file(directory / file, impatient(content_of(std::string(CHORUS_SOURCE_DIR) + "/metrics/rules/" + file)));
  write_file(directory / "prometheus.yml",
             "global: {scrape_interval: 1s, scrape_timeout: 900ms, evaluation_interval: 1s}\n"
             "rule_files: [recording.yml, alerts.yml]\nscrape_configs:\n" +
                 job("chorus-coordinator", coordinators) + job("chorus-worker", workers));
  return {"/usr/bin/prometheus", "--config.file=" + directory / "prometheus.yml",
          "--storage.tsdb.path=" + directory / "data", "--web.listen-address=127.0.0.1:" + port.text(),
          "--log.level=warn"};
}

bool is_number(boost::json::value const& sample) {
  auto const text = sample.at("value").at(1).as_string();
  return text != "NaN";
}

}  // namespace

Prometheus::Prometheus(std::vector<std::string> const& coordinators, std::vector<std::string> const& workers)
    : process_(arguments(directory_, port_, coordinators, workers)) {
  bool const is_ready = eventually(
      [this] {
        auto const answer = httplib::Client("127.0.0.1", port_.number()).Get("/-/ready");
        return answer && answer->status == 200;
      },
      std::chrono::seconds(30));
  if (!is_ready) throw std::runtime_error("prometheus does not start");
}

boost::json::array Prometheus::ask(std::string const& expression, std::string& refusal) const {
  auto const answer =
      httplib::Client("127.0.0.1", port_.number()).Post("/api/v1/query", httplib::Params{{"query", expression}});
  if (!answer) throw std::runtime_error("prometheus does not answer");
  auto const json = boost::json::parse(answer->body);
  if (json.at("status") != "success") {
    refusal = std::string(json.at("error").as_string());
    return {};
  }
  return json.at("data").at("result").as_array();
}

bool Prometheus::knows(std::string const& expression) const {
  std::string refusal;
  return std::ranges::any_of(ask(expression, refusal), is_number);
}

boost::json::value Prometheus::api(std::string const& path) const {
  auto const answer = httplib::Client("127.0.0.1", port_.number()).Get("/api/v1/" + path);
  if (!answer || answer->status != 200) throw std::runtime_error("prometheus: " + path);
  return boost::json::parse(answer->body).at("data");
}

}  // namespace chorus::testing
