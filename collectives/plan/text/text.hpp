// The text form of a program, one line per instruction, for people and for golden tests. It can be read back.
// The grammar is in docs/reference/plan_format.md, a worked example in docs/explanation/plans.md.
#pragma once

#include <string>
#include <string_view>

#include "collectives/plan/program.hpp"

namespace chorus::plan {

[[nodiscard]] std::string_view name(Opcode op);      // "recv_reduce"
[[nodiscard]] std::string_view name(Buffer buffer);  // "scratch"

// Returns an instruction without its dependencies: "recv_reduce input[2] into output[2] from 1 message 0 final".
[[nodiscard]] std::string to_string(Instruction const& instruction);

[[nodiscard]] std::string to_text(Program const& program);

// Reads the text form: parse_text(to_text(p)) == p for every program that build() makes. Blanks may be doubled and
// lines may be empty. The returned program is well formed: its indices, ranks and chunks exist. Only the verifier
// proves that it is right. Errors: PlanErrc::malformed_text with the line number.
[[nodiscard]] Result<Program> parse_text(std::string_view text);

}  // namespace chorus::plan
