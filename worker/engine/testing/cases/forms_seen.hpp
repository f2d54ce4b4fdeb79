// The forms of collectives that a suite has run. The record shows whether two forms occur only together, so that one
// hides a fault of the other.
#pragma once

#include <set>
#include <string_view>
#include <tuple>
#include <vector>

#include "worker/engine/testing/cases/case.hpp"

namespace chorus::engine::testing {

struct Reduction {
  Dtype dtype = Dtype::f32;
  ReduceOp reduce = ReduceOp::sum;
  friend auto operator<=>(Reduction const&, Reduction const&) = default;
};

// Returns every pair that has a kernel.
[[nodiscard]] std::vector<Reduction> all_reductions();

class FormsSeen {
 public:
  void add(Case const& c);

  // CHECKs that the suite has run
  // - every algorithm and operation of the catalogue, every dtype and every window: in place and out of place, with
  //   even blocks and, where the operation allows them, uneven blocks;
  // - every reduction in all_reduce, reduce and reduce_scatter;
  // - every algorithm and operation that does not reduce in worker order with ranks at other positions than their own.
  void check_complete() const;

 private:
  struct Form {
    bool in_place = false, uneven = false;
    friend auto operator<=>(Form const&, Form const&) = default;
  };
  std::set<std::tuple<std::string_view, Op, Form>> plans_;
  std::set<std::tuple<std::string_view, Op>> listed_;
  std::set<std::tuple<Dtype, Form>> dtypes_;
  std::set<std::tuple<std::uint32_t, Form>> windows_;
  std::set<std::tuple<Op, Reduction>> reductions_;
};

}  // namespace chorus::engine::testing
