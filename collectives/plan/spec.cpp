#include "collectives/plan/spec.hpp"

#include <algorithm>
#include <string_view>

#include "collectives/core/errc.hpp"
#include "collectives/plan/digest.hpp"

namespace chorus::plan {
namespace {

// The name must not have spaces, which separate words in the text form.
bool is_word(std::string const& text) {
  auto const fits = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; };
  return !text.empty() && std::all_of(text.begin(), text.end(), fits);
}

Status check_positions(Spec const& spec) {
  auto const& order = spec.by_position;
  if (order.empty()) return ok();
  if (order.size() != spec.ranks)
    return Error(PlanErrc::bad_parameter, "by_position has " + std::to_string(order.size()) +
                                              " numbers; expected one for each of " + std::to_string(spec.ranks) +
                                              " ranks");
  std::vector<bool> seen(order.size(), false);
  for (auto const rank : order) {
    if (rank >= order.size())
      return Error(PlanErrc::rank_out_of_range, "by_position names rank " + std::to_string(rank) + "; expected 0.." +
                                                    std::to_string(order.size() - 1));
    if (seen[rank])
      return Error(PlanErrc::bad_parameter,
                   "by_position names rank " + std::to_string(rank) + " twice; expected every rank once");
    seen[rank] = true;
  }
  if (std::is_sorted(order.begin(), order.end()))
    return Error(PlanErrc::bad_parameter, "by_position is the order of the ranks; expected an empty list for it");
  return ok();
}

void append_list(std::string& text, std::string_view key, std::vector<std::uint32_t> const& list) {
  for (std::size_t i = 0; i < list.size(); ++i)
    text.append(i == 0 ? key : std::string_view(",")).append(std::to_string(list[i]));
}

}  // namespace

Status check(Spec const& spec) {
  if (!is_word(spec.algorithm))
    return Error(PlanErrc::unknown_algorithm, "'" + spec.algorithm + "' is not the name of an algorithm");
  if (spec.ranks < 1 || spec.ranks > max_ranks)
    return Error(PlanErrc::bad_parameter,
                 "ranks is " + std::to_string(spec.ranks) + "; expected 1.." + std::to_string(max_ranks));
  if (spec.root >= spec.ranks)
    return Error(PlanErrc::rank_out_of_range,
                 "root is " + std::to_string(spec.root) + "; expected 0.." + std::to_string(spec.ranks - 1));
  if (spec.shape.size() > max_shape)
    return Error(PlanErrc::bad_parameter, "shape has " + std::to_string(spec.shape.size()) +
                                              " numbers; expected at most " + std::to_string(max_shape));
  if (spec.arity < 1) return Error(PlanErrc::bad_parameter, "arity is 0; expected at least 1");
  return check_positions(spec);
}

std::string to_string(Spec const& spec) {
  auto text = std::string(name(spec.op)) + ' ' + spec.algorithm + " ranks=" + std::to_string(spec.ranks) +
              " root=" + std::to_string(spec.root) + " arity=" + std::to_string(spec.arity) +
              (spec.in_place ? " in_place" : " out_of_place");
  append_list(text, " shape=", spec.shape);
  append_list(text, " by_position=", spec.by_position);
  return text;
}

std::uint64_t hash(Spec const& spec) {
  auto const text = to_string(spec) + " generator=" + std::to_string(generator_version);
  return digest(text.data(), text.size(), 0);
}

}  // namespace chorus::plan
