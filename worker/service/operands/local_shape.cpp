#include "worker/service/operands/local_shape.hpp"

#include <algorithm>
#include <numeric>

#include "collectives/plan/sizes/rows.hpp"
#include "worker/service/requests/problems.hpp"

namespace chorus::service {
namespace {

using http::Checked;

std::uint64_t sum(std::vector<std::uint64_t> const& values) {
  return std::accumulate(values.begin(), values.end(), std::uint64_t{0});
}

std::optional<http::Problem> check_counts(char const* pointer, std::vector<std::uint64_t> const& counts,
                                          std::uint32_t ranks, std::uint64_t row_elements) {
  auto const rows_max = (std::uint64_t{1} << 48) / std::max<std::uint64_t>(row_elements, 1);
  if (counts.size() != ranks)
    return invalid_field(pointer,
                         "has " + std::to_string(counts.size()) + " numbers for " + std::to_string(ranks) + " ranks");
  auto rows = std::uint64_t{0};
  for (auto const count : counts) {
    if (count > rows_max || count > rows_max - rows) return invalid_field(pointer, "sum up to more rows than can be");
    rows += count;
  }
  return std::nullopt;
}

std::optional<http::Problem> check_rows(std::string const& what, std::uint64_t rows, LocalTensor const& tensor,
                                        std::uint64_t expected) {
  if (rows == expected) return std::nullopt;
  return invalid_field("/counts", what + std::to_string(rows) + "; the tensor " + tensor.name + " has " +
                                      std::to_string(expected) + " rows");
}

}  // namespace

Checked<LocalShape> shape_local_call(Op op, std::uint32_t ranks, plan::Rank root, plan::Rank rank,
                                     LocalTensor const& tensor, api::LocalCall const& call) {
  auto const rows = plan::rows_of(tensor.shape);
  LocalShape local;
  auto const result_of = [&](std::uint64_t result_rows) {
    auto const name = call.output.value_or(tensor.name);
    auto const version = call.output ? std::nullopt : std::optional(tensor.version);
    local.result = ResultPlace{name, plan::with_rows(tensor.shape, result_rows), version};
  };
  if (!call.counts.empty() && !has_blocks(op))
    return invalid_field("/counts", std::string(name(op)) + " takes no counts");
  if (!call.counts.empty())
    if (auto problem = check_counts("/counts", call.counts, ranks, rows.elements)) return std::move(*problem);
  if (op != Op::all_to_all && !call.receive_counts.empty())
    return invalid_field("/receive_counts", std::string(name(op)) + " takes none");

  switch (op) {
    case Op::all_reduce:
    case Op::reduce:
    case Op::broadcast:
      local.sizes = {tensor.elements, {}, {}};
      local.elements = tensor.elements;
      if (call.output || (op == Op::broadcast && rank != root && !call.in_place)) result_of(rows.count);
      return local;
    case Op::all_gather:
    case Op::gather:
    case Op::reduce_scatter:
    case Op::scatter: {
      bool const whole = op == Op::reduce_scatter || (op == Op::scatter && rank == root);
      auto const blocks = !call.counts.empty() ? call.counts
                          : whole              ? plan::split_rows(rows.count, ranks)
                                               : std::vector<std::uint64_t>(ranks, rows.count);
      // With counts, the tensor of a rank that only receives does not matter.
      bool const is_told = op == Op::scatter && !whole;
      auto const own = whole ? sum(blocks) : blocks[rank];
      if (!is_told)
        if (auto problem = check_rows(whole ? "sum up to " : "say of this rank ", own, tensor, rows.count))
          return std::move(*problem);
      local.sizes = plan::sizes_of_blocks(blocks, rows.elements);
      local.elements = sum(blocks) * rows.elements;
      result_of(op == Op::all_gather || op == Op::gather ? sum(blocks) : blocks[rank]);
      return local;
    }
    case Op::all_to_all: {
      if (call.counts.empty() != call.receive_counts.empty())
        return invalid_field("/receive_counts", "goes together with counts");
      auto const sent = call.counts.empty() ? plan::split_rows(rows.count, ranks) : call.counts;
      auto const received = call.counts.empty() ? std::vector<std::uint64_t>(ranks, sent[rank]) : call.receive_counts;
      if (auto problem = check_counts("/receive_counts", received, ranks, rows.elements)) return std::move(*problem);
      if (auto problem = check_rows("sum up to ", sum(sent), tensor, rows.count)) return std::move(*problem);
      if (sent[rank] != received[rank])
        return invalid_field("/receive_counts", "says " + std::to_string(received[rank]) +
                                                    " of this rank itself, rank " + std::to_string(rank) +
                                                    ", and counts says " + std::to_string(sent[rank]));
      // With counts no member knows whether those of the others are equal.
      local.sizes = call.counts.empty()
                        ? plan::sizes_of_exchange(sent, received, rows.elements)
                        : plan::Sizes{0, plan::times(sent, rows.elements), plan::times(received, rows.elements)};
      if (call.counts.empty()) local.elements = tensor.elements;
      if (!call.in_place) result_of(sum(received));
      return local;
    }
    case Op::barrier:
      break;
  }
  local.sizes = {ranks, {}, {}};
  local.elements = ranks;
  return local;
}

}  // namespace chorus::service
