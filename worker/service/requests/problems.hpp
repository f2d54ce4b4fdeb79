// Maps errors of lower rooms to the problems that the service returns.
#pragma once

#include <cstdint>
#include <vector>

#include "collectives/core/result.hpp"
#include "http/json/problem.hpp"
#include "worker/engine/failure/errc.hpp"

namespace chorus::service {

// Knows TensorErrc, MemoryErrc, PlanErrc, EngineErrc and GpuErrc; any other error is `internal`.
[[nodiscard]] http::ProblemCode problem_code(std::error_code code);
[[nodiscard]] http::Problem to_problem(Error const& error, std::vector<std::uint32_t> ranks = {});

// The error of a run that ends with such a problem; `aborted` if there is none of its own.
[[nodiscard]] engine::EngineErrc to_errc(http::ProblemCode code);

// 422 invalid_field for one field of a JSON body.
[[nodiscard]] http::Problem invalid_field(std::string pointer, std::string detail);

}  // namespace chorus::service
