#include "collectives/core/error_feedback.hpp"

#include "collectives/core/errc.hpp"

namespace chorus {

Status check_error_feedback(std::optional<CompressionWish> const& compression, bool has_several_tensors) {
  auto const refused = [](char const* why) { return Error(PlanErrc::bad_parameter, why); };
  if (!compression) return refused("is for calls with compression");
  if (compression->is_automatic())
    return refused("is for codes of a format, and 'auto' may send elements: name the format");
  if (compression->between()) return refused("is for codes of all messages, not between groups");
  if (has_several_tensors) return refused("is for one tensor of each rank, not for a list of tensors");
  return ok();
}

}  // namespace chorus
