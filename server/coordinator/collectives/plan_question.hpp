// What the planner is asked about a launched collective, once its tensors are known.
#pragma once

#include <optional>
#include <span>

#include "collectives/model/choice/compressions.hpp"
#include "http/api/collectives/groups.hpp"
#include "server/coordinator/admission/order.hpp"
#include "server/coordinator/admission/planner.hpp"

namespace chorus::coordinator {

// Returns what could be sent: elements, codes, or either. `localities` are in rank order.
[[nodiscard]] model::Alternatives alternatives(std::optional<CompressionWish> const& wish, Admitted const& admitted,
                                               std::span<Locality const> localities);

// Returns the question for one alternative.
[[nodiscard]] Planner::Question question_about(api::Group const& group, Order const& order, Admitted const& admitted,
                                               std::optional<Compression> const& sent);

}  // namespace chorus::coordinator
