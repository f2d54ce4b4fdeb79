#include "collectives/algorithms/doubling/binary_blocks.hpp"

#include <bit>

#include "collectives/algorithms/common/common.hpp"

namespace chorus::algorithms {
namespace {

using plan::Buffer, plan::ChunkRange, plan::Final, plan::Rank, plan::Sink, plan::Spec;

std::uint32_t log2(std::uint32_t power_of_two) { return static_cast<std::uint32_t>(std::countr_zero(power_of_two)); }

// 2^steps ranks, beginning with `first`.
struct Block {
  Rank first = 0;
  std::uint32_t size = 0;  // 0: no such block
  [[nodiscard]] bool contains(Rank rank) const { return rank - first < size; }
  [[nodiscard]] std::uint32_t steps() const { return log2(size); }
};

Block largest_block(std::uint32_t p) { return {0, std::bit_floor(p)}; }

// The bits of p below the block's bit are the number of ranks behind the block.
Block next_smaller(std::uint32_t p, Block block) {
  return {block.first + block.size, std::bit_floor(p & (block.size - 1))};
}

Block block_of(std::uint32_t p, Rank rank) {
  auto block = largest_block(p);
  while (!block.contains(rank)) block = next_smaller(p, block);
  return block;
}

std::uint32_t rounds_between_blocks(std::uint32_t p) {
  auto rounds = std::uint32_t{0};
  for (auto larger = largest_block(p), smaller = next_smaller(p, larger); smaller.size > 0;
       larger = smaller, smaller = next_smaller(p, larger))
    rounds += larger.size / smaller.size;
  return rounds;
}

// A rank's message to or from a rank of the neighbouring block.
struct Crossing {
  Block larger, smaller;
  std::uint32_t turn = 0;  // index among the partners that one rank of the smaller block has
};

// Returns the crossing of a round on the way down, where the two largest blocks come first. The way up is the reverse.
Crossing crossing_in(std::uint32_t p, std::uint32_t round_down) {
  auto larger = largest_block(p), smaller = next_smaller(p, larger);
  while (round_down >= larger.size / smaller.size) {
    round_down -= larger.size / smaller.size;
    larger = smaller;
    smaller = next_smaller(p, larger);
  }
  return {larger, smaller, round_down};
}

// The messages of one rank.
class Blocks {
 public:
  Blocks(Pairing const& pairing, std::uint32_t p, Rank rank)
      : pairing_(pairing), p_(p), own_(block_of(p, rank)), member_(rank - own_.first) {}

  void halve(std::uint32_t step, Sink& sink) const {
    if (step >= own_.steps()) return;
    auto const partner = pairing_.partner(member_, step, own_.steps());
    auto const mine = held_by(member_, step + 1), theirs = held_by(partner, step + 1);
    auto const before = step == 0 ? Buffer::input : Buffer::output;
    auto const final = own_.size == p_ && step + 1 == own_.steps() ? Final::yes : Final::no;
    sink.send(own_.first + partner, slice(before, theirs));
    sink.recv_reduce(own_.first + partner, slice(before, mine), slice(Buffer::output, mine), final);
  }

  void double_up(std::uint32_t step, Sink& sink) const {
    if (step >= own_.steps()) return;
    auto const partner = pairing_.partner(member_, step, own_.steps());
    sink.send(own_.first + partner, slice(Buffer::output, held_by(member_, step + 1)));
    sink.recv(own_.first + partner, slice(Buffer::output, held_by(partner, step + 1)));
  }

  void cross(Crossing const& crossing, bool upwards, Sink& sink) const {
    auto const& [larger, smaller, turn] = crossing;
    auto const ratio = larger.size / smaller.size;
    auto const width = largest_block(p_).size / larger.size;
    if (own_.size == larger.size) {
      auto const part = pairing_.part(member_, larger.steps());
      if (part % ratio != turn) return;
      auto const peer = smaller.first + pairing_.member(part / ratio, smaller.steps());
      auto const range = slice(Buffer::output, {part * width, width});
      if (upwards)
        sink.recv_reduce(peer, range, range, larger.first == 0 ? Final::yes : Final::no);
      else
        sink.send(peer, range);
    } else if (own_.size == smaller.size) {
      auto const part = pairing_.part(member_, smaller.steps()) * ratio + turn;
      auto const peer = larger.first + pairing_.member(part, larger.steps());
      auto const range = ChunkRange{part * width, width};
      if (upwards)
        sink.send(peer, slice(smaller.size == 1 ? Buffer::input : Buffer::output, range));
      else
        sink.recv(peer, slice(Buffer::output, range));
    }
  }

 private:
  // Returns the chunks that a member of the own block holds after this many steps.
  [[nodiscard]] ChunkRange held_by(std::uint32_t member, std::uint32_t steps) const {
    auto const count = largest_block(p_).size >> steps;
    return {(pairing_.part(member, own_.steps()) >> (own_.steps() - steps)) * count, count};
  }

  Pairing const& pairing_;
  std::uint32_t p_;
  Block own_;
  std::uint32_t member_;
};

}  // namespace

std::uint32_t reversed_bits(std::uint32_t number, std::uint32_t count) {
  auto reversed = std::uint32_t{0};
  for (std::uint32_t bit = 0; bit < count; ++bit) reversed |= (number >> bit & 1) << (count - 1 - bit);
  return reversed;
}

std::uint32_t chunks_of_blocks(Spec const& spec) { return largest_block(spec.ranks).size; }

std::uint32_t rounds_of_blocks(Spec const& spec, Rank) {
  if (spec.ranks == 1) return 1;
  return 2 * largest_block(spec.ranks).steps() + 2 * rounds_between_blocks(spec.ranks);
}

// The order is halving, up, down, doubling: the second half mirrors the first.
void emit_blocks(Pairing const& pairing, Spec const& spec, Rank rank, std::uint32_t round, Sink& sink) {
  auto const p = spec.ranks;
  if (p == 1) return emit_alone(sink);
  auto const blocks = Blocks(pairing, p, rank);
  auto const steps = largest_block(p).steps(), between = rounds_between_blocks(p);
  if (round < steps) return blocks.halve(round, sink);
  round -= steps;
  if (round < between) return blocks.cross(crossing_in(p, between - 1 - round), true, sink);
  round -= between;
  if (round < between) return blocks.cross(crossing_in(p, round), false, sink);
  blocks.double_up(steps - 1 - (round - between), sink);
}

}  // namespace chorus::algorithms
