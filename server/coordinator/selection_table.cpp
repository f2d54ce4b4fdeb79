#include "server/coordinator/selection_table.hpp"

#include <algorithm>
#include <iterator>

namespace chorus::coordinator {
namespace {

constexpr std::uint64_t smallest_bytes = 4;
constexpr std::uint64_t largest_bytes = std::uint64_t{1} << 32;
constexpr std::size_t usual_bytes = 4;  // of an element

bool agree(api::Selection const& line, model::Choice const& choice) {
  return line.algorithm == choice.spec.algorithm && line.root == choice.spec.root && line.arity == choice.spec.arity &&
         line.algorithm_shape == choice.spec.shape;
}

bool same_plan(SizedChoice const& a, SizedChoice const& b) {
  auto const &one = a.choice.spec, &other = b.choice.spec;
  return one.algorithm == other.algorithm && one.root == other.root && one.arity == other.arity &&
         one.shape == other.shape;
}

}  // namespace

std::vector<api::Selection> merge_choices(std::span<SizedChoice const> by_size) {
  std::vector<api::Selection> table;
  for (auto const& [bytes, choice] : by_size) {
    if (table.empty() || !agree(table.back(), choice)) {
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
    auto of_halves = by_size;
    for (auto& [bytes, choice] : of_halves) {
      if (!model::may_keep_much({.op = op}, bytes / model::half_bytes, model::half_bytes)) continue;
      auto other = choose(bytes, model::half_bytes);
      if (other.has_error()) return other.error();
      choice = std::move(other.value());
    }
    auto lines_of_halves = merge_choices(of_halves);
    std::ranges::move(lines, std::back_inserter(table));
    if (std::ranges::equal(by_size, of_halves, same_plan)) continue;
    for (auto& line : lines_of_halves) line.op = api::of_halves(line.op);
    std::ranges::move(lines_of_halves, std::back_inserter(table));
  }
  return table;
}

}  // namespace chorus::coordinator
