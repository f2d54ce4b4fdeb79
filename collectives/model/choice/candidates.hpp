// The plans that selection and simulation consider.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "collectives/core/compression.hpp"
#include "collectives/model/network.hpp"
#include "collectives/plan/algorithm.hpp"

namespace chorus::model {

// Constraints of the caller; selection chooses the rest.
struct Wish {
  Op op = Op::all_reduce;
  std::string algorithm = "auto";
  std::optional<plan::Rank> root;
  std::optional<std::uint32_t> arity;
  std::optional<plan::Shape> shape;
  bool in_place = false;
  bool uneven = false;  // blocks of different sizes
  // Codes between groups: only plans that have them, in groups of `compression->between`, unless all ranks are in one.
  // With codes of all messages the elements that the caller passes are carriers.
  std::optional<Compression> compression;
  bool reproducible = false;        // only algorithms that reduce in worker order, which all give the same bits
  bool without_wider_sums = false;  // auto: only algorithms that average without wider numbers (averages.hpp)
  // Numbers by which the reason calls the ranks; empty: their own. Roots of wish and specs are not translated.
  std::vector<plan::Rank> names = {};
};

// Returns shapes for any algorithm that follow from the network: sizes of hosts, racks, zones and regions if these are
// neighbouring ranks; extents of the whole if groups have equal sizes (hosts x workers, racks x hosts x workers, ...);
// and, for up to 16 ranks on different links, parents in trees over the best links.
[[nodiscard]] std::vector<plan::Shape> shapes_of(Network const& network);

// Enumerates the specs by which an algorithm can fulfil a wish.
// Returns the level between whose groups the messages are codes: none if the caller names none, or if all ranks are in
// one group.
[[nodiscard]] std::optional<Level> coded_level(std::optional<Compression> const& compression, Network const& network);
// Returns the sizes of the groups of this level. Errors: PlanErrc::unsupported_operation unless the ranks of each group
// are neighbours.
[[nodiscard]] Result<plan::Shape> shape_between(Level level, Network const& network);

class Candidates {
 public:
  // The network must outlive this object. Computes the shapes above and the root once: the rank of least distance or,
  // over given links, of least cost for a segment.
  Candidates(Wish wish, Network const& network);

  // Returns the specs that the algorithm accepts and that fit the wish. Unless the wish fixes them, arities are 2, 4
  // and 8 (of equal stars only the first), and shapes are the empty one, the algorithm's own and those of the network.
  // A root that an algorithm does not use is 0, an unused arity 2, so that equal plans have equal hashes.
  [[nodiscard]] std::vector<plan::Spec> of(plan::Algorithm const& algorithm) const;

  // Returns why there are no specs, with possible wishes: a PlanErrc, the algorithm's own if it refuses the spec.
  [[nodiscard]] Error refusal(plan::Algorithm const& algorithm) const;
  [[nodiscard]] Error refusal() const;  // for all algorithms together

 private:
  [[nodiscard]] plan::Spec plain(plan::Algorithm const& algorithm) const;
  [[nodiscard]] std::vector<plan::Shape> shapes_for(plan::Algorithm const& algorithm) const;
  [[nodiscard]] bool fits(plan::Algorithm const& algorithm, plan::Spec const& spec) const;

  Wish wish_;
  Network const& network_;
  plan::Rank root_;
  std::optional<Level> coded_level_;
  std::vector<plan::Shape> shapes_;
};

}  // namespace chorus::model
