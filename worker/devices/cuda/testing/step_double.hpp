// A step as the double does it: element by element, in the order of the formulas.
#pragma once

#include "worker/devices/cuda/step.hpp"

namespace chorus::devices::testing {

// All addresses are of memory that the host may look at.
void take_step(StepOrder const& order);

}  // namespace chorus::devices::testing
