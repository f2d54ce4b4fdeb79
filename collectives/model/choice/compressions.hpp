// The model's decision among formats (CompressionWish::automatic): elements, or codes of a format that is allowed.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/core/compression.hpp"
#include "collectives/model/choice/select.hpp"

namespace chorus::model {

// What may be sent for one wish. `why_only_elements` says why no format is among them; empty if one is.
struct Alternatives {
  std::vector<std::optional<Compression>> sent;  // none: elements, which come first if the wish is automatic
  std::string why_only_elements;
};

// Returns the compression that is asked for; of an automatic one, elements and every format that is allowed and that
// the dtype has. Only elements if all ranks are on one host, where codes gain nothing, or in one group of the level
// between whose groups codes are wished.
[[nodiscard]] Alternatives alternatives(std::optional<CompressionWish> const& wish, Dtype dtype,
                                        std::span<Locality const> localities);

// Returns the wish for one alternative: reductions of codes of all messages are reproducible.
[[nodiscard]] Wish wish_for(Wish wish, std::optional<Compression> const& sent);

// One alternative with the best plan that sends it.
struct Sent {
  std::optional<Compression> compression;
  Choice choice;
};

// Orders by the cost of the chosen plan as the model has it. What is known of runs does not count: it is of one format,
// and would favour the one that ran first where the model is too slow. Elements precede codes that are not faster.
void sort_by_cost(std::vector<Sent>& considered);
// Returns the reason for the first, which compares it with the others: "codes of int8: allpairs: predicted 1.90 ms,
// next best ...; codes of bf16: 3.10 ms by allpairs; elements: 7.20 ms by ring".
[[nodiscard]] std::string reason(std::span<Sent const> sorted, std::string const& why_only_elements);

// Returns the algorithm of members' calls with codes of all messages, if the group's table has `of_elements`: the same,
// if it adds each element at one place in the order of the ranks, otherwise one that does and sends few bytes.
[[nodiscard]] std::string_view algorithm_of_codes(Op op, std::string_view of_elements, std::uint32_t ranks);

}  // namespace chorus::model
