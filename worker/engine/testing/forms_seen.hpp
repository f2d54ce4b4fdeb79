// Which forms of collectives a suite has run: a form that only ever comes together with another hides what is wrong
// with it alone.
#pragma once

#include <set>
#include <string_view>
#include <tuple>
#include <vector>

#include "worker/engine/testing/case.hpp"

namespace chorus::engine::testing {

struct Reduction {
  Dtype dtype = Dtype::f32;
  ReduceOp reduce = ReduceOp::sum;
  friend auto operator<=>(Reduction const&, Reduction const&) = default;
};

// Every pair that there are kernels for.
[[nodiscard]] std::vector<Reduction> all_reductions();

class FormsSeen {
 public:
  void add(Case const& c);

  // CHECKs that there were: every algorithm and operation of the catalogue, each in place and not, and both of these
  // with even and, where there can be any, with uneven blocks; every dtype and every window with all of these four; and
  // every reduction in all_reduce, reduce and reduce_scatter; and, with the ranks at other positions than their own,
  // every algorithm and operation that knows positions.
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
