#include "tests/monitoring/expressions.hpp"

#include <algorithm>
#include <boost/json.hpp>
#include <filesystem>
#include <regex>

#include "tests/support/scratch_directory.hpp"

namespace chorus::testing {
namespace {

namespace json = boost::json;

std::string replaced(std::string text, std::string const& pattern, std::string const& by) {
  return std::regex_replace(text, std::regex(pattern), by);
}

std::string filled_in(std::string text) {
  text = replaced(text, R"(\$coordinator_job)", "chorus-coordinator");
  text = replaced(text, R"(\$worker_job)", "chorus-worker");
  text = replaced(text, R"(\$(instance|op|algorithm|coordinator)\b)", ".+");
  return replaced(text, R"(\$__rate_interval)", "1m");
}

// label_values(series, label): the series have the label.
std::string question_of_variable(std::string const& query) {
  std::smatch parts;
  if (!std::regex_match(query, parts, std::regex(R"(label_values\((.*), (\w+)\))"))) return query;
  return "count by (" + parts[2].str() + ") (" + filled_in(parts[1].str()) + ")";
}

}  // namespace

std::string without_condition(std::string expression) {
  expression = replaced(expression, R"(\s+offset \w+)", "");
  expression = replaced(expression, R"(\bunless\b)", "and");
  return replaced(expression, R"(\s*(==|!=|>=|<=|>|<)\s*(bool\s+)?[0-9.]+)", "");
}

std::vector<Question> dashboard_questions(std::string const& directory) {
  std::vector<Question> questions;
  for (auto const& entry : std::filesystem::directory_iterator(directory)) {
    auto const dashboard = json::parse(content_of(entry.path().string()));
    auto const uid = std::string(dashboard.at("uid").as_string());
    for (auto const& panel : dashboard.at("panels").as_array()) {
      if (!panel.as_object().contains("targets")) continue;
      for (auto const& target : panel.at("targets").as_array())
        questions.push_back({uid + ": " + std::string(panel.at("title").as_string()),
                             filled_in(std::string(target.at("expr").as_string()))});
    }
    for (auto const& annotation : dashboard.at("annotations").at("list").as_array())
      questions.push_back({uid + ": annotation " + std::string(annotation.at("name").as_string()),
                           without_condition(filled_in(std::string(annotation.at("expr").as_string())))});
    for (auto const& variable : dashboard.at("templating").at("list").as_array())
      if (variable.at("query").is_object())
        questions.push_back({uid + ": variable " + std::string(variable.at("name").as_string()),
                             question_of_variable(std::string(variable.at("query").at("query").as_string()))});
  }
  return questions;
}

}  // namespace chorus::testing
