#include "worker/engine/shm/calls/shared_exchange.hpp"

#include <algorithm>
#include <span>

namespace chorus::engine {
namespace {

bool only_sends(Step const& step) {
  return step.destinations.empty() && step.operands.size() == 1 && !step.operands[0].message && step.after.empty() &&
         is_in_one_piece(step);
}

bool only_folds(Step const& step) {
  auto const is_first = [](Operand const& operand) { return !operand.message || operand.message->number == 0; };
  return !step.destinations.empty() && step.sends.empty() && step.after.empty() && is_in_one_piece(step) &&
         std::ranges::all_of(step.operands, is_first);
}

Exchange::Place place_of(Range const& range) { return {range.pieces[0].buffer, range.pieces[0].at}; }

}  // namespace

std::optional<Exchange> to_exchange(std::vector<Step> const& steps) {
  if (steps.size() < 2) return std::nullopt;
  auto const& last = steps.back();
  auto const before = std::span(steps).first(steps.size() - 1);
  if (!only_folds(last) || !std::ranges::all_of(before, only_sends)) return std::nullopt;
  Exchange exchange;
  for (std::uint32_t s = 0; s < before.size(); ++s) {
    for (auto const& name : before[s].sends)
      exchange.sent.push_back({place_of(before[s].operands[0].local), before[s].bytes, name, s});
    exchange.instructions_that_send += before[s].steps;
  }
  for (auto const& operand : last.operands) {
    if (operand.message)
      exchange.operands.push_back({operand.message->channel, {}, operand.is_partial});
    else
      exchange.operands.push_back({std::nullopt, place_of(operand.local), operand.is_partial});
  }
  for (auto const& range : last.destinations) exchange.destinations.push_back(place_of(range));
  exchange.bytes = last.bytes;
  exchange.is_final = last.is_final;
  exchange.instructions = exchange.instructions_that_send + last.steps;
  return exchange;
}

}  // namespace chorus::engine
