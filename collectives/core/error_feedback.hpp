// Which calls may have error feedback: what compression lost of a tensor is added to its next values.
#pragma once

#include <optional>

#include "collectives/core/compression.hpp"
#include "collectives/core/result.hpp"

namespace chorus {

// Checks a call with error feedback. Errors: PlanErrc::bad_parameter; the detail says what error feedback is for.
[[nodiscard]] Status check_error_feedback(std::optional<CompressionWish> const& compression, bool has_several_tensors);

}  // namespace chorus
