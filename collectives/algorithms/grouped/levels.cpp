#include "collectives/algorithms/grouped/levels.hpp"

#include <algorithm>
#include <cmath>

#include "collectives/algorithms/common/common.hpp"
#include "collectives/algorithms/ring/ring_stage.hpp"
#include "collectives/core/assert.hpp"

namespace chorus::algorithms {
namespace {

using plan::Buffer, plan::ChunkRange, plan::Final, plan::Rank, plan::Sink;

// One rank's place in its group.
struct Member {
  Member(Rank own, std::uint32_t size_, std::uint32_t stride_)
      : rank(own), size(size_), stride(stride_), index(own / stride_ % size_) {}

  [[nodiscard]] Rank rank_of(std::uint32_t member) const { return rank - index * stride + member * stride; }
  [[nodiscard]] std::uint32_t after(std::uint32_t steps) const { return (index + steps) % size; }
  [[nodiscard]] RingMember in_ring() const { return {index, size, rank_of(after(1)), rank_of(after(size - 1))}; }

  Rank rank;
  std::uint32_t size, stride, index;
};

ChunkRange part(ChunkRange range, std::uint32_t index, std::uint32_t parts) {
  auto const count = range.count / parts;
  return {range.first + index * count, count};
}

}  // namespace

void Levels::add(std::uint32_t size, std::uint32_t stride) {
  if (size == 1) return;
  CHORUS_ASSERT(count_ < max_levels, "sizes above one multiply to at most 2^16");
  levels_[count_++] = {size, stride};
  steps_ += size - 1;
}

// Gathering mirrors scattering: the same levels and steps, from the last to the first.
void Levels::emit(Rank rank, std::uint32_t round, ChunkRange vector, Sink& sink) const {
  bool const scatters = round < steps_;
  auto step = scatters ? round : rounds() - 1 - round;
  auto held = vector;
  auto level = std::size_t{0};
  for (; step >= levels_[level].size - 1; ++level) {
    auto const [size, stride] = levels_[level];
    step -= size - 1;
    held = part(held, rank / stride % size, size);
  }
  if (scatters)
    emit_scatter(rank, level, step, held, sink);
  else
    emit_gather(rank, level, levels_[level].size - 2 - step, held, sink);
}

void Levels::emit_scatter(Rank rank, std::size_t level, std::uint32_t step, ChunkRange held, Sink& sink) const {
  auto const member = Member(rank, levels_[level].size, levels_[level].stride);
  bool const untouched = level == 0;
  auto const final = level + 1 == count_ ? Final::yes : Final::no;
  if (exchange_ == Exchange::in_ring)
    return emit_ring_reduce_scatter(member.in_ring(), step, held, untouched, final, sink);

  auto const to = member.after(step + 1), from = member.after(member.size - 1 - step);
  auto const contribution = untouched ? Buffer::input : Buffer::output;
  auto const mine = part(held, member.index, member.size);
  sink.send(member.rank_of(to), slice(contribution, part(held, to, member.size)));
  sink.recv_reduce(member.rank_of(from), slice(step == 0 ? contribution : Buffer::output, mine),
                   slice(Buffer::output, mine), step + 2 == member.size ? final : Final::no);
}

void Levels::emit_gather(Rank rank, std::size_t level, std::uint32_t step, ChunkRange held, Sink& sink) const {
  auto const member = Member(rank, levels_[level].size, levels_[level].stride);
  if (exchange_ == Exchange::in_ring) return emit_ring_all_gather(member.in_ring(), step, held, sink);

  auto const to = member.after(step + 1), from = member.after(member.size - 1 - step);
  sink.send(member.rank_of(to), slice(Buffer::output, part(held, member.index, member.size)));
  sink.recv(member.rank_of(from), slice(Buffer::output, part(held, from, member.size)));
}

Levels levels_of(plan::Shape const& extents, Exchange exchange) {
  Levels levels(exchange);
  auto stride = std::uint32_t{1};
  for (auto extent = extents.rbegin(); extent != extents.rend(); ++extent) {
    levels.add(*extent, stride);
    stride *= *extent;
  }
  return levels;
}

Status check_extents(plan::Spec const& spec, std::size_t count, std::string_view expected, plan::Shape const& example) {
  auto product = std::uint64_t{1};
  for (auto const extent : spec.shape) product = std::min(product * extent, std::uint64_t{plan::max_ranks} + 1);
  if ((count == 0 || spec.shape.size() == count) && product == spec.ranks) return ok();
  return wrong_shape(spec, std::string(expected) + " whose product is " + std::to_string(spec.ranks) + ", such as " +
                               to_text(example));
}

std::uint32_t largest_divisor(std::uint32_t n, std::uint32_t limit) {
  auto divisor = std::min(n, limit);
  while (n % divisor != 0) --divisor;
  return divisor;
}

std::uint32_t square_root(std::uint32_t n) { return static_cast<std::uint32_t>(std::sqrt(static_cast<double>(n))); }

Grid squarest_grid(std::uint32_t ranks) {
  auto const rows = largest_divisor(ranks, square_root(ranks));
  return {rows, ranks / rows};
}

Grid grid_of(plan::Spec const& spec) {
  return spec.shape.empty() ? squarest_grid(spec.ranks) : Grid{spec.shape[0], spec.shape[1]};
}

}  // namespace chorus::algorithms
