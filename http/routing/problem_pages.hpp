// Explains the cause and the remedy of each problem code. The texts are served at GET /problems/{code}, to which the
// `type` of every problem points, and make up the table of docs/reference/problems.md.
#pragma once

#include <string>

#include "http/json/problem.hpp"
#include "http/routing/router.hpp"

namespace chorus::http {

[[nodiscard]] std::string problem_page(ProblemCode code);  // plain text

// Returns the rows of the table of docs/reference/problems.md.
[[nodiscard]] std::string problem_table();

// Adds GET /problems/{code} with access `open`.
void add_problem_pages(Router& router);

}  // namespace chorus::http
