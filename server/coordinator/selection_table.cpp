#include "server/coordinator/selection_table.hpp"

#include <algorithm>
#include <iterator>

namespace chorus::coordinator {
namespace {

constexpr std::uint64_t smallest_bytes = 4;
constexpr std::uint64_t largest_bytes = std::uint64_t{1} << 32;
constexpr std::size_t usual_bytes = 4;  // of an element

bool agree(api::Selection const& line, plan::Spec const& spec) {
  return line.algorithm == spec.algorithm && line.root == spec.root && line.arity == spec.arity &&
         line.algorithm_shape == spec.shape;
}

bool have_same_plans(std::span<api::Selection const> lines, std::span<api::Selection const> others) {
  return std::ranges::equal(lines, others, [](auto const& a, auto const& b) {
    return a.max_bytes == b.max_bytes && a.algorithm == b.algorithm && a.root == b.root && a.arity == b.arity &&
           a.algorithm_shape == b.algorithm_shape;
  });
}

}  // namespace

std::vector<api::Selection> merge_choices(std::span<SizedChoice const> by_size) {
  std::vector<api::Selection> table;
  for (auto const& [bytes, choice] : by_size) {
    if (table.empty() || !agree(table.back(), choice.spec)) {
      api::Selection line;
      line.op = name(choice.spec.op);
      line.algorithm = choice.spec.algorithm;
      line.root = choice.spec.root;
      line.arity = choice.spec.arity;
      line.algorithm_shape = choice.spec.shape;
      table.push_back(std::move(line));
    }
    table.back().max_bytes = bytes;
    table.back().reason = "at " + std::to_string(bytes) + " bytes " + choice.reason;
  }
  if (!table.empty()) table.back().max_bytes.reset();
  return table;
}

Result<std::vector<api::Selection>> selection_table(model::Network const& network) {
  std::vector<api::Selection> table;
  for (auto const op : all_ops) {
    std::vector<SizedChoice> by_size;
    auto const step = op == Op::all_reduce ? 4u : 16u;
    // As if blocks were uneven: what is in the table suits every call.
    auto const choose = [&](std::uint64_t bytes, std::size_t element_bytes) {
      return model::select({.op = op, .uneven = has_blocks(op)}, network, bytes / element_bytes, element_bytes);
    };
    for (auto bytes = smallest_bytes; bytes <= largest_bytes; bytes *= step) {
      auto choice = choose(bytes, usual_bytes);
      if (choice.has_error()) return choice.error();
      by_size.push_back({bytes, std::move(choice.value())});
      if (op == Op::barrier) break;
    }
    auto lines = merge_choices(by_size);
    for (auto& [bytes, choice] : by_size) {
      if (!model::may_keep_much({.op = op}, network, bytes / model::half_bytes, model::half_bytes)) continue;
      auto for_halves = choose(bytes, model::half_bytes);
      if (for_halves.has_error()) return for_halves.error();
      choice = std::move(for_halves.value());
    }
    auto lines_for_halves = merge_choices(by_size);
    if (have_same_plans(lines, lines_for_halves)) lines_for_halves.clear();
    for (auto& line : lines_for_halves) line.op = api::of_halves(line.op);
    std::ranges::move(lines, std::back_inserter(table));
    std::ranges::move(lines_for_halves, std::back_inserter(table));
  }
  return table;
}

}  // namespace chorus::coordinator
