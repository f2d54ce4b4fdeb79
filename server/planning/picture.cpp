#include "server/planning/picture.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "collectives/core/assert.hpp"
#include "collectives/model/volume.hpp"
#include "server/planning/svg.hpp"

namespace chorus::planning {
namespace {

using plan::Opcode, plan::Rank;

constexpr std::uint64_t vector_bytes = 1 << 20;
constexpr std::uint32_t most_rounds = 10;
constexpr auto copied = "#2a6fbb", reduced = "#c2571a", quiet = "#bbb", dark = "#333";

struct Message {
  std::uint32_t round;
  Rank from, to;
  double part;  // of the vector
  bool reduces;
};

std::uint32_t rounds_of(plan::Algorithm const& algorithm, plan::Spec const& spec) {
  auto rounds = std::uint32_t{0};
  for (Rank rank = 0; rank < spec.ranks; ++rank) rounds = std::max(rounds, algorithm.rounds(spec, rank));
  return rounds;
}

// Receives contain everything to draw. Rounds without a message take no space.
std::vector<Message> messages_of(plan::Algorithm const& algorithm, plan::Spec const& spec) {
  model::Volume const volume(spec, algorithm.chunks(spec), vector_bytes, 1);
  auto const whole = static_cast<double>(volume.bytes());
  std::vector<Message> messages;
  plan::Sink sink;
  for (std::uint32_t round = 0; round < rounds_of(algorithm, spec); ++round)
    for (Rank rank = 0; rank < spec.ranks; ++rank) {
      sink.clear();
      if (round < algorithm.rounds(spec, rank)) algorithm.emit(spec, rank, round, sink);
      for (auto const& i : sink.instructions()) {
        if (!i.receives()) continue;
        auto const bytes = static_cast<double>(volume.bytes({i.dst, i.dst_chunk, i.chunks, i.stride}));
        messages.push_back({round, i.peer, rank, bytes / whole, i.op == Opcode::recv_reduce});
      }
    }
  auto before = std::uint32_t{0}, shown = std::uint32_t{0};
  for (auto& message : messages) {
    if (message.round != before && &message != messages.data()) ++shown;
    before = message.round;
    message.round = shown;
  }
  return messages;
}

}  // namespace

plan::Spec spec_to_draw(plan::Algorithm const& algorithm) {
  for (auto const ranks : {8u, 6u, 5u, 4u})
    for (auto const op : all_ops) {
      plan::Spec spec{.op = op, .algorithm = std::string(algorithm.name), .ranks = ranks};
      if (algorithm.check(spec).has_error()) continue;
      if (ranks == 4 || rounds_of(algorithm, spec) <= most_rounds) return spec;
      break;
    }
  CHORUS_ASSERT(false, "every algorithm does something for four ranks");
}

std::string picture(plan::Algorithm const& algorithm, plan::Spec const& spec) {
  constexpr auto left = 62.0, top = 44.0, row = 26.0, column = 74.0, bottom = 34.0;
  auto const messages = messages_of(algorithm, spec);
  auto const rounds = messages.empty() ? 0 : messages.back().round + 1;
  auto const width = std::max(left + rounds * column + 20, 360.0), height = top + (spec.ranks - 1) * row + bottom;
  auto const title = spec.algorithm + ": " + std::string(name(spec.op)) + " over " + std::to_string(spec.ranks) +
                     " ranks in " + std::to_string(rounds) + " rounds";
  Svg svg(static_cast<int>(width), static_cast<int>(height), title);
  svg.text(10, 17, title, Svg::Anchor::start, 13);
  auto const x = [&](std::uint32_t round) { return left + round * column; };
  auto const y = [&](Rank rank) { return top + rank * row; };
  for (Rank rank = 0; rank < spec.ranks; ++rank) {
    svg.text(left - 12, y(rank) + 4, "rank " + std::to_string(rank), Svg::Anchor::end, 11);
    svg.line(x(0), y(rank), x(rounds), y(rank), quiet, 1);
  }
  for (std::uint32_t round = 0; round < rounds; ++round)
    svg.text(x(round) + column / 2, 34, std::to_string(round + 1), Svg::Anchor::middle, 10, "#777");
  for (auto const& message : messages)
    svg.arrow(x(message.round) + 4, y(message.from), x(message.round + 1) - 4, y(message.to),
              message.reduces ? reduced : copied, 1 + 2.5 * std::min(message.part, 1.0));
  for (Rank rank = 0; rank < spec.ranks; ++rank)
    for (std::uint32_t round = 0; round <= rounds; ++round) svg.circle(x(round), y(rank), 3, dark);
  auto const legend_y = height - 8;
  svg.arrow(left, legend_y - 4, left + 24, legend_y - 4, reduced, 2);
  svg.text(left + 30, legend_y, "reduced on arrival", Svg::Anchor::start, 10);
  svg.arrow(left + 140, legend_y - 4, left + 164, legend_y - 4, copied, 2);
  svg.text(left + 170, legend_y, "as it is", Svg::Anchor::start, 10);
  return svg.document();
}

}  // namespace chorus::planning
