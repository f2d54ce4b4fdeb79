#include "collectives/plan/sizes/sizes.hpp"

#include <limits>
#include <string>

#include "collectives/core/errc.hpp"

namespace chorus::plan {
namespace {

constexpr auto most_elements = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());

Error bad(std::string why) { return {PlanErrc::bad_parameter, std::move(why)}; }

Status check_counts(std::string const& field, std::vector<std::uint64_t> const& counts, std::uint32_t ranks) {
  if (counts.size() != ranks)
    return bad(field + " has " + std::to_string(counts.size()) + " numbers; expected one for each of " +
               std::to_string(ranks) + " ranks");
  auto sum = std::uint64_t{0};
  for (auto const count : counts) {
    if (count > most_elements - sum) return bad(field + " sum up to more than 63 bits hold");
    sum += count;
  }
  return ok();
}

Layout uneven(Program const& program, std::span<std::uint64_t const> counts) {
  if (program.spec.by_position.empty()) return {counts, program.chunks};
  return {counts, program.spec.by_position, program.chunks};
}

Layout even(Program const& program, std::uint64_t elements) {
  auto const& spec = program.spec;
  if (!has_blocks(spec.op)) return {elements, program.chunks};
  if (spec.by_position.empty()) return {elements, spec.ranks, program.chunks};
  Layout const blocks(elements, spec.ranks);
  std::vector<std::uint64_t> counts(spec.ranks);
  for (Rank rank = 0; rank < spec.ranks; ++rank) counts[rank] = blocks.range(rank).size();
  return uneven(program, counts);
}

std::uint64_t elements_of(ChunkRange const& range, Layout const& layout) {
  return layout.begin_of(range.first + range.count) - layout.begin_of(range.first);
}

}  // namespace

Status check(Program const& program, Sizes const& sizes) {
  auto const& spec = program.spec;
  auto const name_of = [&] { return std::string(name(spec.op)); };
  if (sizes.elements > most_elements) return bad("elements do not fit 63 bits");
  if (sizes.counts.empty() != sizes.receive_counts.empty() && (spec.op == Op::all_to_all || sizes.counts.empty()))
    return bad(name_of() + " takes counts of what is sent and of what is received, or neither");
  if (!sizes.counts.empty()) {
    if (!has_blocks(spec.op) || spec.op == Op::barrier) return bad(name_of() + " takes no counts");
    if (auto const status = check_counts("counts", sizes.counts, spec.ranks); status.has_error()) return status;
    if (spec.op != Op::all_to_all && !sizes.receive_counts.empty()) return bad(name_of() + " takes no receive_counts");
  }
  if (!sizes.receive_counts.empty())
    if (auto const status = check_counts("receive_counts", sizes.receive_counts, spec.ranks); status.has_error())
      return status;
  if (spec.op == Op::all_to_all && !sizes.counts.empty())
    if (auto const sent = sizes.counts[program.rank], received = sizes.receive_counts[program.rank]; sent != received)
      return bad("rank " + std::to_string(program.rank) + " sends " + std::to_string(sent) +
                 " elements to itself and receives " + std::to_string(received) + " from itself");
  if (program.equal_chunks)
    if (auto const both = layouts(program, sizes); !both.input.is_equal() || !both.output.is_equal())
      return bad(spec.algorithm + " needs blocks of equal size");
  if (spec.op == Op::all_to_all && spec.in_place) {
    auto const both = layouts(program, sizes);
    for (std::uint32_t chunk = 1; chunk <= program.chunks; ++chunk)
      if (both.input.begin_of(chunk) != both.output.begin_of(chunk))
        return bad("all_to_all in place needs as much from every rank as it sends to it");
  }
  return ok();
}

Layouts layouts(Program const& program, Sizes const& sizes) {
  auto const& spec = program.spec;
  if (!sizes.counts.empty()) {
    auto const input = uneven(program, sizes.counts);
    return {input, sizes.receive_counts.empty() ? input : uneven(program, sizes.receive_counts)};
  }
  auto const input = even(program, sizes.elements);
  if (spec.op != Op::all_to_all) return {input, input};
  auto const own_block = Layout(sizes.elements, spec.ranks).range(program.rank).size();
  std::vector<std::uint64_t> const received(spec.ranks, own_block);
  return {input, uneven(program, received)};
}

std::uint64_t input_elements(Program const& program, Layouts const& layouts) {
  return elements_of(program.input, layouts.input);
}

std::uint64_t output_elements(Program const& program, Layouts const& layouts) {
  return elements_of(program.output, layouts.output);
}

}  // namespace chorus::plan
