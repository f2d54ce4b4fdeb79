// Checks of a run's spec that need nothing but the spec.
#pragma once

#include "worker/engine/program/run_spec.hpp"

namespace chorus::engine {

// Errors: EngineErrc::aborted with the reason.
[[nodiscard]] Status check(RunSpec const& spec);

// True if the program has input and output in the same memory.
[[nodiscard]] bool is_in_one_buffer(plan::Program const& program);

}  // namespace chorus::engine
