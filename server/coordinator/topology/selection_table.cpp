#include "server/coordinator/topology/selection_table.hpp"

#include <algorithm>
#include <iterator>

namespace chorus::coordinator {
namespace {

constexpr std::uint64_t smallest_bytes = 4;
constexpr std::uint64_t largest_bytes = std::uint64_t{1} << 32;
constexpr std::size_t element_bytes = 4;

bool agree(api::Selection const& line, model::Choice const& choice) {
  return line.algorithm == choice.spec.algorithm && line.root == choice.spec.root && line.arity == choice.spec.arity &&
         line.algorithm_shape == choice.spec.shape;
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
    // Assumes uneven blocks, so that the table suits every call.
    for (auto bytes = smallest_bytes; bytes <= largest_bytes; bytes *= step) {
      auto choice = model::select({.op = op, .uneven = has_blocks(op)}, network, bytes / element_bytes, element_bytes);
      if (choice.has_error()) return choice.error();
      by_size.push_back({bytes, std::move(choice.value())});
      if (op == Op::barrier) break;
    }
    auto lines = merge_choices(by_size);
    std::ranges::move(lines, std::back_inserter(table));
  }
  return table;
}

}  // namespace chorus::coordinator
