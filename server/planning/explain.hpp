// Shows the model's choice to people: at the coordinator for groups and dry runs, and by `chorus plan` without one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "collectives/core/compression.hpp"
#include "collectives/core/result.hpp"
#include "collectives/model/choice/compressions.hpp"
#include "collectives/model/choice/select.hpp"
#include "collectives/plan/sizes/sizes.hpp"
#include "http/api/collectives/collectives.hpp"
#include "server/planning/place.hpp"

namespace chorus::planning {

inline constexpr std::uint32_t drawn_ranks_max = 64;  // above, PlanAnswer::rounds is empty

// Returns the cheapest variant of each of the cheapest algorithms, at most `most`, and the chosen one; cheapest first.
[[nodiscard]] std::vector<api::Considered> show_cheapest(model::Choice const& choice, std::size_t most);
[[nodiscard]] api::LowerBound show_lower_bound(Op op, std::uint32_t ranks, std::uint64_t bytes);

// Returns what model::select() chooses for the ranks of a place: roots are ranks, and specs have the positions. Errors:
// PlanErrc.
[[nodiscard]] Result<model::Choice> select_in(Place const& place, model::Wish wish, std::uint64_t elements,
                                              std::size_t element_bytes);

// Returns the pointer to the member of a request whose wish select() refuses. It is that of the compression if no
// algorithm of the operation sends codes between these groups.
[[nodiscard]] std::string refused_member(model::Wish const& wish);

// Returns the spec of positions as a spec of ranks.
[[nodiscard]] plan::Spec in_ranks(plan::Spec of_positions, std::vector<plan::Rank> const& by_position);

// Returns the whole answer of a dry run over `bytes` per rank: the choice, its proof for up to `verified_ranks_max`
// ranks, and the transfers of each round. Pure; builds every rank's program, so the work for a ring grows with the
// square of the ranks. Errors: PlanErrc.
[[nodiscard]] Result<api::PlanAnswer> explain(model::Choice const& choice, std::uint64_t bytes,
                                              std::uint32_t verified_ranks_max);

// Bytes of a vector per byte of its codes; 1 if there are none.
[[nodiscard]] inline double compression_ratio(std::uint64_t bytes, std::uint64_t wire_bytes) {
  return wire_bytes == 0 ? 1 : static_cast<double>(bytes) / static_cast<double>(wire_bytes);
}

// Returns the compression of a dry run. Errors: PlanErrc::unsupported_operation, also for an unknown format.
[[nodiscard]] Result<std::optional<CompressionWish>> compression_of(std::optional<api::Compression> const& wished,
                                                                    Op op, Dtype dtype);

// What a collective moves. `sent`: elements, or codes of all messages or of some; the dtype has these codes.
struct Vector {
  plan::Sizes sizes;
  Dtype dtype = Dtype::f32;

  using Sent = std::optional<Compression>;
  // What the model prices: the elements, or the codes if all messages are codes.
  [[nodiscard]] std::uint64_t priced_elements(Sent const& sent, Op op, std::uint32_t ranks) const;
  [[nodiscard]] std::size_t priced_element_bytes(Sent const& sent) const;
  // Returns the size of the codes of the whole vector, if the plan that was chosen sends codes.
  [[nodiscard]] std::optional<std::uint64_t> wire_bytes(Sent const& sent, plan::Spec const& chosen) const;
};

// What is sent, and by which plan.
struct Decision {
  std::optional<Compression> compression;
  model::Choice choice;                     // its reason compares formats if the wish is automatic
  std::optional<WireFormat> format;         // of the codes that the plan sends
  std::optional<std::uint64_t> wire_bytes;  // of these codes, for the whole vector
  std::optional<std::vector<api::ConsideredFormat>> considered_formats;  // of an automatic wish, fastest first
};
// Decides for the fastest of the alternatives, each of which has been chosen a plan for.
[[nodiscard]] Decision decide(std::optional<CompressionWish> const& wish, model::Alternatives const& alternatives,
                              std::vector<model::Sent> considered, Vector const& vector);

// Returns the explained choice for the ranks of a place, and their order. A root in the wish is a row of the given
// links, if there are any. `compression` decides about that of the wish. Errors: PlanErrc.
[[nodiscard]] Result<api::PlanAnswer> plan_in(Place const& place, model::Wish wish, Vector const& vector,
                                              std::optional<CompressionWish> const& compression,
                                              std::uint32_t verified_ranks_max);

}  // namespace chorus::planning
