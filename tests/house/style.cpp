#include "tests/house/style.hpp"

#include <regex>
#include <sstream>

namespace chorus::house {
namespace {

enum class Where { everywhere, services, tests };  // services: not tests/, examples/ or *_test.cpp

struct Ban {
  std::regex pattern;
  Where where;
  char const* instead;
};

// The words are split so that this file does not find itself.
std::vector<Ban> bans() {
  auto const flags = std::regex::ECMAScript | std::regex::optimize;
  return {
      {std::regex(R"(\bsto(i|l|ul|ll|ull|f|d)\()", flags), Where::everywhere, "std::from_chars with limits"},
      {std::regex(R"(\bato(i|l|f)\()", flags), Where::everywhere, "std::from_chars with limits"},
      {std::regex(R"(\bdetach)"
                  R"(ed\b|\.detach)"
                  R"(\(\))",
                  flags),
       Where::everywhere, "an owner that cancels and joins"},
      {std::regex(R"(\[[^\]]+\]\s*\([^)]*\)\s*(mutable\s*)?->\s*(boost::)?(asio::)?awaitable<)", flags),
       Where::everywhere, "a named coroutine that takes its arguments by value (captures die with the lambda)"},
      {std::regex(R"(\busing namespace std;)", flags), Where::everywhere, "qualified names"},
      {std::regex(R"(\b(TO)"
                  R"(DO|FIX)"
                  R"(ME|X)"
                  R"(XX|HA)"
                  R"(CK)\b)",
                  flags),
       Where::everywhere, "an issue"},
      {std::regex(R"(#include <cassert>|[^_a-z]assert\()", flags), Where::services,
       "CHORUS_ASSERT, which stays on in release builds"},
      {std::regex(R"(sleep_for\()", flags), Where::tests, "waiting for the event itself"},
      {std::regex(R"(system_clock)", flags), Where::services,
       "steady_clock: only monotonic clocks decide (http/rfc3339 shows times to people)"},
      {std::regex(R"(/wo)"
                  R"(rk/)",
                  flags),
       Where::everywhere, "a path relative to the repository"},
  };
}

bool is_test(std::string const& file) {
  return file.starts_with("tests/") || file.starts_with("examples/") || file.ends_with("_test.cpp");
}

bool applies(Ban const& ban, std::string const& file) {
  if (ban.where == Where::services) return !is_test(file);
  if (ban.where == Where::tests) return is_test(file) && !file.starts_with("examples/");
  return true;
}

constexpr std::size_t line_limit = 130;
constexpr std::size_t file_limit = 400;

}  // namespace

Findings check_style(std::vector<Source> const& sources) {
  Findings findings;
  auto const all = bans();
  for (auto const& source : sources) {
    std::istringstream lines(source.text);
    std::string line;
    std::size_t number = 0;
    while (std::getline(lines, line)) {
      ++number;
      if (line.size() > line_limit)
        findings.push_back({source.file, number, "longer than " + std::to_string(line_limit) + " characters"});
      for (auto const& ban : all)
        if (applies(ban, source.file) && std::regex_search(line, ban.pattern))
          findings.push_back({source.file, number, std::string("use ") + ban.instead + " instead of: " + line});
    }
    if (number > file_limit)
      findings.push_back(
          {source.file, number, "more than " + std::to_string(file_limit) + " lines: which second subject moved in?"});
  }
  return findings;
}

}  // namespace chorus::house
