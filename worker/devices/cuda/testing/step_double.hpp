// An optimizer step of the double: element by element, in the order of the formulas.
#pragma once

#include "worker/devices/cuda/kernels/step.hpp"

namespace chorus::devices::testing {

// All addresses are accessible to the host.
void take_step(StepOrder const& order);

}  // namespace chorus::devices::testing
