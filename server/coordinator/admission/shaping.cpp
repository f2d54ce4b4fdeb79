#include "server/coordinator/admission/shaping.hpp"

#include <algorithm>
#include <numeric>

#include "server/coordinator/text/identifier.hpp"

namespace chorus::coordinator {
namespace {

using http::Checked;
using http::Problem;

constexpr std::uint64_t most_rows = std::uint64_t{1} << 48;

std::uint64_t sum(std::span<std::uint64_t const> values) {
  return std::accumulate(values.begin(), values.end(), std::uint64_t{0});
}

class Shaper {
 public:
  explicit Shaper(Shapes const& shapes) : in_(shapes), ranks_(static_cast<std::uint32_t>(shapes.shapes.size())) {}

  Checked<Shaping> shape() {
    out_.parts.resize(ranks_);
    if (auto problem = check_counts()) return std::move(*problem);
    if (auto problem = check_in_place()) return std::move(*problem);
    switch (in_.op) {
      case Op::all_reduce:
      case Op::reduce:
      case Op::broadcast:
        whole_vectors();
        break;
      case Op::all_gather:
      case Op::gather:
        gathered();
        break;
      case Op::reduce_scatter:
      case Op::scatter:
        if (auto problem = scattered()) return std::move(*problem);
        break;
      case Op::all_to_all:
        if (auto problem = exchanged()) return std::move(*problem);
        break;
      case Op::barrier:
        for (auto& part : out_.parts) part.sizes = {ranks_, {}, {}};
        out_.elements = ranks_;
        break;
    }
    out_.uneven = std::any_of(out_.parts.begin(), out_.parts.end(),
                              [](RankPart const& part) { return !part.sizes.counts.empty(); }) ||
                  (has_blocks(in_.op) && out_.elements % ranks_ != 0);
    return std::move(out_);
  }

 private:
  std::optional<Problem> check_counts() const {
    if (in_.counts.empty()) return std::nullopt;
    auto const expected = in_.op == Op::all_to_all                                ? std::uint64_t{ranks_} * ranks_
                          : in_.op == Op::reduce_scatter || in_.op == Op::scatter ? ranks_
                                                                                  : 0;
    if (expected == 0)
      return invalid_field("/counts", std::string(name(in_.op)) +
                                          " takes none: reduce_scatter, scatter and all_to_all do, and what "
                                          "all_gather and gather collect is what each rank has");
    if (in_.counts.size() != expected)
      return invalid_field("/counts", std::to_string(in_.counts.size()) + " numbers; expected " +
                                          std::to_string(expected) + " for " + std::to_string(ranks_) + " ranks");
    auto rows = std::uint64_t{0};
    for (auto const count : in_.counts) {
      if (count > most_rows - rows) return invalid_field("/counts", "they sum up to more rows than can be");
      rows += count;
    }
    return std::nullopt;
  }

  std::optional<Problem> check_in_place() const {
    if (!in_.in_place) return std::nullopt;
    if (in_.output) return invalid_field("/in_place", "the result goes to another tensor, '" + *in_.output + "'");
    bool const as_large = in_.op == Op::all_reduce || in_.op == Op::reduce || in_.op == Op::broadcast ||
                          (in_.op == Op::all_to_all && in_.counts.empty());
    if (as_large) return std::nullopt;
    return invalid_field("/in_place", std::string(name(in_.op)) +
                                          " leaves another size than it finds; all_reduce, reduce, broadcast and "
                                          "all_to_all without counts can be in place");
  }

  [[nodiscard]] plan::TensorShape const& source() const {
    if (in_.shapes[in_.root]) return *in_.shapes[in_.root];
    return **std::find_if(in_.shapes.begin(), in_.shapes.end(), [](auto const& shape) { return shape.has_value(); });
  }

  void put_result(std::uint32_t rank, plan::TensorShape shape) {
    std::optional<std::uint64_t> version;
    if (!in_.output) version = in_.versions[rank];
    out_.parts[rank].result = api::RunResult{in_.output.value_or(in_.tensor), std::move(shape), version};
  }

  void whole_vectors() {
    auto const& shape = source();
    auto const rows = plan::rows_of(shape);
    out_.elements = rows.count * rows.elements;
    for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
      out_.parts[rank].sizes = {out_.elements, {}, {}};
      bool const gets = in_.op != Op::reduce || rank == in_.root;
      bool const is_told = in_.op == Op::broadcast && rank != in_.root && !in_.in_place;  // it brings no tensor itself
      if (gets && (in_.output || is_told)) put_result(rank, shape);
    }
  }

  void gathered() {
    auto const& shape = source();
    auto const row_elements = plan::rows_of(shape).elements;
    std::vector<std::uint64_t> rows;
    for (auto const& each : in_.shapes) rows.push_back(plan::rows_of(*each).count);
    out_.elements = sum(rows) * row_elements;
    for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
      out_.parts[rank].sizes = plan::sizes_of_blocks(rows, row_elements);
      if (in_.op == Op::all_gather || rank == in_.root) put_result(rank, plan::with_rows(shape, sum(rows)));
    }
  }

  std::optional<Problem> scattered() {
    auto const& shape = source();
    auto const rows = plan::rows_of(shape);
    auto const blocks = in_.counts.empty() ? plan::split_rows(rows.count, ranks_) : in_.counts;
    if (sum(blocks) != rows.count)
      return invalid_field("/counts", "they sum up to " + std::to_string(sum(blocks)) + "; the tensor has " +
                                          std::to_string(rows.count) + " rows");
    out_.elements = rows.count * rows.elements;
    for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
      out_.parts[rank].sizes = plan::sizes_of_blocks(blocks, rows.elements);
      put_result(rank, plan::with_rows(shape, blocks[rank]));
    }
    return std::nullopt;
  }

  std::optional<Problem> exchanged() {
    auto const row_elements = plan::rows_of(source()).elements;
    auto const sent_by = [&](std::uint32_t rank) {
      auto const rows = plan::rows_of(*in_.shapes[rank]).count;
      if (in_.counts.empty()) return plan::split_rows(rows, ranks_);
      auto const begin = in_.counts.begin() + std::ptrdiff_t{rank} * ranks_;
      return std::vector<std::uint64_t>(begin, begin + ranks_);
    };
    std::vector<std::vector<std::uint64_t>> sent;
    for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
      sent.push_back(sent_by(rank));
      auto const rows = plan::rows_of(*in_.shapes[rank]).count;
      if (sum(sent.back()) != rows)
        return invalid_field("/counts", "those of rank " + std::to_string(rank) + " sum up to " +
                                            std::to_string(sum(sent.back())) + "; its tensor has " +
                                            std::to_string(rows) + " rows");
      out_.elements = std::max(out_.elements, rows * row_elements);
    }
    for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
      std::vector<std::uint64_t> received;
      for (auto const& from : sent) received.push_back(from[rank]);
      if (in_.in_place && received != sent[rank])
        return invalid_field("/in_place", "the rows do not divide evenly among " + std::to_string(ranks_) + " ranks");
      out_.parts[rank].sizes = plan::sizes_of_exchange(sent[rank], received, row_elements);
      if (!in_.in_place) put_result(rank, plan::with_rows(*in_.shapes[rank], sum(received)));
    }
    same_form();
    return std::nullopt;
  }

  // All ranks describe their sizes in the same form, so that their fingerprints agree.
  void same_form() {
    bool const any_uneven = std::any_of(out_.parts.begin(), out_.parts.end(),
                                        [](RankPart const& part) { return !part.sizes.counts.empty(); });
    if (!any_uneven) return;
    for (auto& part : out_.parts) {
      if (!part.sizes.counts.empty()) continue;
      part.sizes.counts.assign(ranks_, part.sizes.elements / ranks_);
      part.sizes.receive_counts = part.sizes.counts;
      part.sizes.elements = 0;
    }
  }

  Shapes const& in_;
  std::uint32_t const ranks_;
  Shaping out_;
};

}  // namespace

Checked<Shaping> shape_parts(Shapes const& shapes) { return Shaper(shapes).shape(); }

}  // namespace chorus::coordinator
