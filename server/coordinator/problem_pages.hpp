// GET /problems/{code}: what a problem means and what to do, in plain text. The `type` of every problem points here.
#pragma once

#include <string>

#include "http/problem.hpp"

namespace chorus::coordinator {

[[nodiscard]] std::string problem_page(http::ProblemCode code);

}  // namespace chorus::coordinator
