#include "worker/engine/testing/cases/forms_seen.hpp"

#include <doctest/doctest.h>

#include "collectives/algorithms/catalogue.hpp"
#include "worker/devices/reduce.hpp"

namespace chorus::engine::testing {

std::vector<Reduction> all_reductions() {
  std::vector<Reduction> all;
  for (auto const dtype : all_dtypes)
    for (auto const reduce : all_reduce_ops)
      if (devices::can_reduce(reduce, dtype)) all.push_back({dtype, reduce});
  return all;
}

void FormsSeen::add(Case const& c) {
  Form const form{c.in_place, !c.counts.empty()};
  plans_.insert({c.algorithm->name, c.op, form});
  if (!c.by_position.empty()) listed_.insert({c.algorithm->name, c.op});
  dtypes_.insert({c.dtype, form});
  windows_.insert({c.window, form});
  if (reduces(c.op)) reductions_.insert({c.op, {c.dtype, c.reduce}});
}

void FormsSeen::check_complete() const {
  for (Form const form : {Form{false, false}, Form{false, true}, Form{true, false}, Form{true, true}}) {
    CAPTURE(form.in_place);
    CAPTURE(form.uneven);
    for (auto const op : all_ops)
      for (auto const* algorithm : algorithms::all_for(op)) {
        bool const only_equal = algorithm->equal_chunks != nullptr && op == Op::all_to_all;
        if (form.uneven && (!has_blocks(op) || op == Op::barrier || only_equal)) continue;
        CHECK_MESSAGE(plans_.contains({algorithm->name, op, form}), name(op), " ", algorithm->name);
      }
    for (auto const dtype : all_dtypes) CHECK_MESSAGE(dtypes_.contains({dtype, form}), name(dtype));
    for (std::uint32_t window = 1; window <= 4; ++window) CHECK_MESSAGE(windows_.contains({window, form}), window);
  }
  for (auto const op : all_ops)
    for (auto const* algorithm : algorithms::all_for(op)) {
      plan::Spec const spec{.op = op, .algorithm = std::string(algorithm->name), .ranks = 4};
      bool const by_rank = algorithm->in_worker_order != nullptr && algorithm->in_worker_order(spec);
      bool const is_listed = listed_.contains({algorithm->name, op});
      CHECK_MESSAGE(is_listed != by_rank, name(op), " ", algorithm->name, " with the ranks at other positions");
    }
  for (auto const op : {Op::all_reduce, Op::reduce, Op::reduce_scatter})
    for (auto const reduction : all_reductions())
      CHECK_MESSAGE(reductions_.contains({op, reduction}), name(op), " ", name(reduction.reduce), " of ",
                    name(reduction.dtype));
}

}  // namespace chorus::engine::testing
