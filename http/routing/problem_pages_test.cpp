#include "http/routing/problem_pages.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

using namespace chorus::http;

TEST_CASE("every problem has a page that says its cause and its remedy") {
  for (auto i = 0; i <= static_cast<int>(ProblemCode::rows_exhausted); ++i) {
    auto const code = static_cast<ProblemCode>(i);
    auto const page = problem_page(code);
    CHECK(page.starts_with(kind(code).name));
    auto const cause = page.find("\nCause: "), remedy = page.find("\nRemedy: ");
    REQUIRE(cause != std::string::npos);
    REQUIRE(remedy != std::string::npos);
    CHECK(remedy - cause > 25);
    CHECK(page.size() - remedy > 25);
    CHECK(page.ends_with(".\n"));
  }
}

TEST_CASE("a page has lines of at most a hundred columns") {
  std::istringstream page(problem_page(ProblemCode::region_damaged));
  for (std::string line; std::getline(page, line);) CHECK(line.size() <= 100);
}

TEST_CASE("the table of docs/reference/problems.md is made from the pages; CHORUS_WRITE_DOCS=1 writes it") {
  std::string const path = CHORUS_SOURCE_DIR "/docs/reference/problems.md";
  std::ostringstream file;
  file << std::ifstream(path).rdbuf();
  auto const text = file.str();
  std::string const head = "|---|---|---|---|---|---|\n";
  auto const begin = text.find(head) + head.size();
  if (std::getenv("CHORUS_WRITE_DOCS") != nullptr) std::ofstream(path) << text.substr(0, begin) << problem_table();
  CHECK(text.substr(begin) == problem_table());
}
