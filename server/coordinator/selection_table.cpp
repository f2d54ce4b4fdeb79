#include "server/coordinator/selection_table.hpp"

#include <algorithm>
#include <iterator>

namespace chorus::coordinator {
namespace {

constexpr std::uint64_t smallest_bytes = 4;
constexpr std::uint64_t largest_bytes = std::uint64_t{1} << 32;
constexpr std::size_t usual_bytes = 4;  // of an element

api::Selection line_of(SizedChoice const& sized) {
  auto const& spec = sized.choice.spec;
  return {std::string(name(spec.op)),
          sized.bytes,
          spec.algorithm,
          spec.root,
          spec.arity,
          spec.shape,
          "at " + std::to_string(sized.bytes) + " bytes " + sized.choice.reason};
}

bool same_plan(api::Selection const& a, api::Selection const& b) {
  return a.algorithm == b.algorithm && a.root == b.root && a.arity == b.arity && a.algorithm_shape == b.algorithm_shape;
}

bool same_line(api::Selection const& a, api::Selection const& b) {
  return a.max_bytes == b.max_bytes && same_plan(a, b);
}

}  // namespace

std::vector<api::Selection> merge_choices(std::span<SizedChoice const> by_size) {
  std::vector<api::Selection> table;
  for (auto const& sized : by_size) {
    auto line = line_of(sized);
    if (!table.empty() && same_plan(table.back(), line)) table.pop_back();
    table.push_back(std::move(line));
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
    if (std::ranges::equal(lines, lines_for_halves, same_line)) lines_for_halves.clear();
    for (auto& line : lines_for_halves) line.op = api::of_halves(line.op);
    std::ranges::move(lines, std::back_inserter(table));
    std::ranges::move(lines_for_halves, std::back_inserter(table));
  }
  return table;
}

}  // namespace chorus::coordinator
