// The text form of a program: one line per instruction, for people, for golden tests, and to read back.
// The grammar and a worked example are in docs/plans.md.
#pragma once

#include <string>
#include <string_view>

#include "collectives/plan/program.hpp"

namespace chorus::plan {

[[nodiscard]] std::string to_text(Program const& program);

// Reads what to_text writes. Errors: PlanErrc::malformed_text with the line number.
[[nodiscard]] Result<Program> parse_text(std::string_view text);

}  // namespace chorus::plan
