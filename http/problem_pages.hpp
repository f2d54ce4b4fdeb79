// What a problem comes from and what to do about it: one page per code, for GET /problems/{code}, where the `type` of
// every problem points, and for docs/problems.md.
#pragma once

#include <string>

#include "http/problem.hpp"
#include "http/router.hpp"

namespace chorus::http {

[[nodiscard]] std::string problem_page(ProblemCode code);  // plain text

// The rows of the table of docs/problems.md.
[[nodiscard]] std::string problem_table();

// GET /problems/{code}, open: every service explains what it says.
void add_problem_pages(Router& router);

}  // namespace chorus::http
