// The plans that selection and simulation consider.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "collectives/model/network.hpp"
#include "collectives/plan/algorithm.hpp"

namespace chorus::model {

// Constraints of the caller; everything else is chosen.
struct Wish {
  Op op = Op::all_reduce;
  std::string algorithm = "auto";
  std::optional<plan::Rank> root;
  std::optional<std::uint32_t> arity;
  std::optional<plan::Shape> shape;
  bool in_place = false;
  bool uneven = false;        // blocks of different sizes
  bool reproducible = false;  // only algorithms that reduce in worker order: all give the same bits
};

// Shapes that follow from the localities of the ranks, for any algorithm: the sizes of hosts, racks, zones and regions
// if these are neighbouring ranks; the extents of the whole if they are equal (hosts x workers, racks x hosts x
// workers, ...); and, for up to 16 ranks on different links, the parents in trees over the best links.
[[nodiscard]] std::vector<plan::Shape> shapes_of(Network const& network);

// Enumerates the specs by which an algorithm can fulfil a wish.
class Candidates {
 public:
  // The network must outlive this object. Computes the shapes above and the root once: that of least distance or, over
  // given links, of least cost for a segment.
  Candidates(Wish wish, Network const& network);

  // Specs that the algorithm accepts and that fit the wish: trees of arity 2, 4 and 8 (if several would be the same
  // star, the first), the empty shape, the algorithm's own shapes and the topology's, unless the wish fixes them. A
  // root or arity that an algorithm does not use is 0 or 2, so that equal plans have equal hashes.
  [[nodiscard]] std::vector<plan::Spec> of(plan::Algorithm const& algorithm) const;

  // Why there are no specs, and what would be possible. PlanErrc; the algorithm's own error if it refuses the spec.
  [[nodiscard]] Error refusal(plan::Algorithm const& algorithm) const;
  [[nodiscard]] Error refusal() const;  // of all algorithms

 private:
  [[nodiscard]] plan::Spec plain(plan::Algorithm const& algorithm) const;
  [[nodiscard]] std::vector<plan::Shape> shapes_for(plan::Algorithm const& algorithm) const;
  [[nodiscard]] bool fits(plan::Algorithm const& algorithm, plan::Spec const& spec) const;

  Wish wish_;
  Network const& network_;
  plan::Rank root_;
  std::vector<plan::Shape> shapes_;
};

}  // namespace chorus::model
