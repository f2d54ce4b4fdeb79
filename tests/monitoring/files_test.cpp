// Rules, dashboards and runbooks fit each other and the catalogue of metrics.
#include <doctest/doctest.h>

#include <algorithm>
#include <boost/json.hpp>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "metrics/catalogue/catalogue.hpp"

namespace json = boost::json;
using namespace chorus;

namespace {

std::string const root = CHORUS_SOURCE_DIR;

std::string content(std::string const& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  REQUIRE_MESSAGE(!text.str().empty(), path);
  return text.str();
}

std::vector<std::string> matches(std::string const& text, std::string const& pattern) {
  std::regex const regex(pattern);
  std::vector<std::string> found;
  for (std::sregex_iterator next(text.begin(), text.end(), regex), end; next != end; ++next)
    found.push_back((*next)[1].str());
  return found;
}

std::set<std::string> as_set(std::vector<std::string> const& list) { return {list.begin(), list.end()}; }

std::map<std::string, json::object> dashboards() {
  std::map<std::string, json::object> all;
  for (auto const& entry : std::filesystem::directory_iterator(root + "/metrics/dashboards")) {
    auto dashboard = json::parse(content(entry.path().string())).as_object();
    auto const uid = std::string(dashboard.at("uid").as_string());
    CHECK_MESSAGE(all.emplace(uid, std::move(dashboard)).second, uid);
  }
  return all;
}

std::set<std::string> panel_ids(json::object const& dashboard) {
  std::set<std::string> ids;
  for (auto const& panel : dashboard.at("panels").as_array()) CHECK(ids.insert(json::serialize(panel.at("id"))).second);
  return ids;
}

// All expressions of a dashboard, and the queries of its variables.
std::string expressions_of(json::object const& dashboard) {
  std::string text;
  for (auto const& panel : dashboard.at("panels").as_array())
    if (panel.as_object().contains("targets"))
      for (auto const& target : panel.at("targets").as_array())
        text += std::string(target.at("expr").as_string()) + "\n";
  for (auto const& annotation : dashboard.at("annotations").at("list").as_array())
    text += std::string(annotation.at("expr").as_string()) + "\n";
  for (auto const& variable : dashboard.at("templating").at("list").as_array())
    if (variable.at("query").is_object()) text += std::string(variable.at("query").at("query").as_string()) + "\n";
  return text;
}

// Names of series that the catalogue's families, the recording rules or others export.
bool is_known(std::string const& name) {
  static auto const recorded = as_set(matches(content(root + "/metrics/rules/recording.yml"), R"(record: (\S+))"));
  if (recorded.contains(name)) return true;
  return std::ranges::any_of(metrics::catalogue(), [&](metrics::Metric const& metric) {
    auto const family = std::string(metric.name);
    if (metric.type != metrics::Type::histogram) return name == family;
    return name == family + "_bucket" || name == family + "_sum" || name == family + "_count";
  });
}

void check_names(std::string const& text) {
  auto names = matches(text, R"(\b((?:chorus|process)_[a-z_]+|[a-z_]+:[a-z0-9_:]+)\b)");
  CHECK_FALSE(names.empty());
  for (auto const& name : names) CHECK_MESSAGE(is_known(name), name);
}

}  // namespace

TEST_CASE("every alert has a runbook, and every runbook an alert") {
  auto const rules = content(root + "/metrics/rules/alerts.yml");
  auto const alerts = as_set(matches(rules, R"(- alert: (\w+))"));
  CHECK(alerts.size() > 20);
  CHECK(alerts == as_set(matches("\n" + content(root + "/docs/guides/runbooks.md"), R"(\n## (\w+))")));
  for (auto alert : alerts) {
    std::ranges::transform(alert, alert.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    CHECK_MESSAGE(rules.find("runbook_url: docs/guides/runbooks.md#" + alert + "\n") != std::string::npos, alert);
  }
}

TEST_CASE("every alert says what happens in a sentence, and leads to a panel that exists") {
  auto const rules = content(root + "/metrics/rules/alerts.yml");
  auto const count = matches(rules, R"((- alert:))").size();
  auto const summaries = matches(rules, R"(summary: '([^\n]+)'\n)");
  CHECK(summaries.size() == count);
  for (auto const& summary : summaries) CHECK_MESSAGE(summary.ends_with('.'), summary);
  auto const all = dashboards();
  auto const links = matches(rules, R"(dashboard: /d/([a-z-]+\?viewPanel=\d+)\n)");
  CHECK(links.size() == count);
  for (auto const& link : links) {
    auto const cut = link.find('?');
    auto const id = link.substr(link.find('=') + 1);
    REQUIRE_MESSAGE(all.contains(link.substr(0, cut)), link);
    CHECK_MESSAGE(panel_ids(all.at(link.substr(0, cut))).contains(id), link);
  }
}

TEST_CASE("rules and dashboards ask only for what is exported or recorded") {
  auto const exprs = [](std::string const& text) {
    std::string all;
    for (auto const& part : matches(text + "\n      - ", R"(expr: ([\s\S]*?)\n {6}(?: {2}\w+:|- ))"))
      all += part + "\n";
    return all;
  };
  check_names(exprs(content(root + "/metrics/rules/recording.yml")));
  check_names(exprs(content(root + "/metrics/rules/alerts.yml")));
  for (auto const& [uid, dashboard] : dashboards()) check_names(expressions_of(dashboard));
}

TEST_CASE("every family is on some dashboard") {
  std::string text = content(root + "/metrics/rules/recording.yml") + content(root + "/metrics/rules/alerts.yml");
  for (auto const& [uid, dashboard] : dashboards()) text += expressions_of(dashboard);
  for (auto const& metric : metrics::catalogue()) {
    auto const name = std::string(metric.name);
    CHECK_MESSAGE(text.find(name) != std::string::npos, name);
  }
}

TEST_CASE("every dashboard explains its panels, shows new epochs and leads to the status page") {
  auto const all = dashboards();
  CHECK(all.size() == 6);
  for (auto const& [uid, dashboard] : all) {
    CAPTURE(uid);
    panel_ids(dashboard);
    for (auto const& panel : dashboard.at("panels").as_array()) {
      if (panel.at("type") == "row") continue;
      CHECK_FALSE(panel.at("description").as_string().empty());
      CHECK(panel.at("datasource").at("uid") == "${ds}");
      CHECK_FALSE(panel.at("targets").as_array().empty());
    }
    CHECK(dashboard.at("annotations").at("list").at(0).at("name") == "Epochs of groups");
    CHECK(dashboard.at("links").at(0).at("url") == "http://${coordinator}/");
  }
}
