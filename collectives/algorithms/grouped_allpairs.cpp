// grouped_allpairs: allpairs in every group, then between the groups, and back. Where a run has a format, the messages
// between groups are codes (Program::coded_from).
//
// Rank q owns chunk q of p. In every group one member represents each chunk: its owner, or in other groups the members
// in turn. The members send their contributions to the representatives, which add them in rank order. Each
// representative encodes its partial sum and sends it to the owner. The owner decodes the partial sums and adds them to
// that of its own group: first the next group's, then the one after that, and so on. It encodes the sum once. The codes
// go to the representatives and on to all members, and every rank decodes the same codes.
//
// Steps: about 4 s + 2 g for g groups of at most s ranks. Bytes: a rank sends (s-1)/s n inside its group and about
// 2 (g-1)/p n out of it, which is the minimum for a group's uplink; then (s-1)/s n of codes inside.
//
// Foreign chunks come first: their way is the longer one. In place the sums grow in scratch, since the output still has
// the rank's own contributions; otherwise in the output.
//
// Shape: the sizes of the groups, which are neighbouring ranks; their sum is p. Empty: about sqrt(p) groups of sizes as
// equal as possible.
//
// Source: the two-level quantized reduction of ZeRO++ (Wang et al., "ZeRO++: Extremely Efficient Collective
// Communication for Giant Model Training", 2023), with exchanges as in allpairs.
#include <algorithm>
#include <numeric>

#include "collectives/algorithms/catalogue.hpp"
#include "collectives/algorithms/common.hpp"
#include "collectives/algorithms/levels.hpp"

namespace chorus::algorithms {
namespace {

using plan::Final, plan::input, plan::output, plan::Rank, plan::scratch, plan::Shape, plan::Sink, plan::Slice,
    plan::Spec;

Shape even_shape(std::uint32_t ranks) {
  auto const groups = square_root(ranks);
  Shape shape(groups, ranks / groups);
  for (std::uint32_t group = 0; group < ranks % groups; ++group) ++shape[group];
  return shape;
}

Status check(Spec const& spec) {
  auto const status = only<Op::all_reduce>(spec);
  if (status.has_error() || spec.shape.empty()) return status;
  auto const sum = std::accumulate(spec.shape.begin(), spec.shape.end(), std::uint64_t{0});
  bool const has_empty = std::ranges::find(spec.shape, 0U) != spec.shape.end();
  if (sum == spec.ranks && !has_empty) return ok();
  return wrong_shape(spec, "sizes of groups, none of them 0, whose sum is " + std::to_string(spec.ranks) +
                               ", such as " + to_text(even_shape(spec.ranks)));
}

std::uint32_t chunks(Spec const& spec) { return spec.ranks; }

// Scratch: sums in place, then a chunk of codes for every chunk.
std::uint32_t coded_from(Spec const& spec) { return spec.in_place ? spec.ranks : 0; }

std::uint32_t scratch_chunks(Spec const& spec, Rank) { return spec.ranks == 1 ? 0 : coded_from(spec) + spec.ranks; }

struct Group {
  Rank begin = 0;
  std::uint32_t size = 0;

  [[nodiscard]] bool has(Rank rank) const { return rank >= begin && rank - begin < size; }
};

// The groups, as one rank sees them. A chunk has the number of its owner.
class Groups {
 public:
  explicit Groups(Spec const& spec)
      : shape_(spec.shape.empty() ? even_shape(spec.ranks) : spec.shape),
        turns_(2 * *std::ranges::max_element(shape_) - 1) {}

  [[nodiscard]] std::uint32_t count() const { return static_cast<std::uint32_t>(shape_.size()); }
  // Rounds in which every two members of a group meet once.
  [[nodiscard]] std::uint32_t turns() const { return turns_; }

  [[nodiscard]] std::uint32_t index_of(Rank rank) const {
    std::uint32_t index = 0;
    for (Rank end = shape_[0]; rank >= end; end += shape_[++index]) continue;
    return index;
  }
  [[nodiscard]] Group group(std::uint32_t index) const {
    return {std::accumulate(shape_.begin(), shape_.begin() + index, Rank{0}), shape_[index]};
  }

  // Representative of a chunk in a group.
  [[nodiscard]] Rank representative(Group group, Rank chunk) const {
    if (group.has(chunk)) return chunk;
    auto const nth = chunk < group.begin ? chunk : chunk - group.size;
    return group.begin + nth % group.size;
  }

 private:
  Shape shape_;
  std::uint32_t turns_;
};

// One rank's view of a round.
class View {
 public:
  View(Spec const& spec, Groups const& groups, Rank rank, Sink& sink)
      : spec_(spec),
        groups_(groups),
        rank_(rank),
        index_(groups.index_of(rank)),
        group_(groups.group(index_)),
        own_(rank - group_.begin),
        sink_(sink) {}

  // Members whose places add to `turn` meet: each sends its contributions to the chunks that the other represents.
  void reduce_in_group(std::uint32_t turn) const {
    if (turn < own_ || turn - own_ >= group_.size) return;
    auto const peer = turn - own_;
    if (peer != own_) for_each_foreign(peer, [&](Rank chunk) { sink_.send(group_.begin + peer, input(chunk)); });
    if (peer != own_) sink_.send(group_.begin + peer, input(group_.begin + peer));
    for_each_foreign(own_, [&](Rank chunk) { take(chunk, peer); });
    take(rank_, peer);
  }

  // Encodes the partial sums of the chunks that are owned `distance` groups before this one.
  void encode_partials(std::uint32_t distance) const {
    for_each_represented(distance, [this](Rank chunk) { sink_.copy(partial(chunk), codes(chunk)); });
  }
  void send_partials(std::uint32_t distance) const {
    for_each_represented(distance, [this](Rank chunk) { sink_.send(chunk, codes(chunk)); });
    sink_.recv(representative_after(distance), codes(rank_));
  }
  void add_partial(std::uint32_t distance) const {
    sink_.reduce(codes(rank_), sum(rank_), distance + 1 == groups_.count() ? Final::yes : Final::no);
  }

  void encode_result() const { sink_.copy(sum(rank_), codes(rank_)); }
  void send_result(std::uint32_t distance) const {
    sink_.send(representative_after(distance), codes(rank_));
    for_each_represented(distance, [this](Rank chunk) { sink_.recv(chunk, codes(chunk)); });
  }
  // The own chunks are complete first.
  void spread_in_group(std::uint32_t turn) const {
    if (turn < own_ || turn - own_ >= group_.size || turn - own_ == own_) return;
    auto const peer = turn - own_, at = group_.begin + peer;
    sink_.send(at, codes(rank_));
    for_each_foreign(own_, [&](Rank chunk) { sink_.send(at, codes(chunk)); });
    sink_.recv(at, codes(at));
    for_each_foreign(peer, [&](Rank chunk) { sink_.recv(at, codes(chunk)); });
  }
  void decode() const {
    for (Rank chunk = 0; chunk < spec_.ranks; ++chunk) sink_.copy(codes(chunk), output(chunk));
  }
  // For a single group, whose sums never become codes.
  void spread_sums(std::uint32_t turn) const {
    if (turn < own_ || turn - own_ >= group_.size || turn - own_ == own_) return;
    auto const peer = group_.begin + turn - own_;
    sink_.send(peer, output(rank_));
    sink_.recv(peer, output(peer));
  }

 private:
  [[nodiscard]] bool sums_in_scratch() const { return spec_.in_place && group_.size > 1; }
  [[nodiscard]] Slice sum(Rank chunk) const { return sums_in_scratch() ? scratch(chunk) : output(chunk); }
  [[nodiscard]] Slice codes(Rank chunk) const { return scratch(coded_from(spec_) + chunk); }
  [[nodiscard]] Slice partial(Rank chunk) const { return group_.size > 1 ? sum(chunk) : input(chunk); }

  // Calls use(chunk) for the foreign chunks that a member represents.
  template <class Use>
  void for_each_foreign(std::uint32_t member, Use use) const {
    for (auto nth = member; nth < spec_.ranks - group_.size; nth += group_.size)
      use(nth < group_.begin ? nth : nth + group_.size);
  }
  [[nodiscard]] Rank representative_after(std::uint32_t distance) const {
    return groups_.representative(groups_.group((index_ + distance) % groups_.count()), rank_);
  }
  template <class Use>
  void for_each_represented(std::uint32_t distance, Use use) const {
    auto const owners = groups_.group((index_ + groups_.count() - distance) % groups_.count());
    for (Rank chunk = owners.begin; chunk < owners.begin + owners.size; ++chunk)
      if (groups_.representative(group_, chunk) == rank_) use(chunk);
  }

  // Adds the contribution of a member, in the order of members.
  void take(Rank chunk, std::uint32_t member) const {
    auto const peer = group_.begin + member;
    bool const is_last = member + 1 == group_.size, is_all = is_last && groups_.count() == 1;
    auto const final = is_all ? Final::yes : Final::no;
    auto const to = is_all ? output(chunk) : sum(chunk);
    if (group_.size == 1) {
      if (chunk == rank_) sink_.copy(input(chunk), to);
    } else if (member == own_ && member > 0) {
      sink_.reduce(input(chunk), sum(chunk), final);
      if (is_all && sums_in_scratch()) sink_.copy(sum(chunk), to);
    } else if (member == 0 && member != own_) {
      sink_.recv(peer, sum(chunk));
    } else if (member > 0) {
      sink_.recv_reduce(peer, own_ == 0 && member == 1 ? input(chunk) : sum(chunk), to, final);
    }
  }

  Spec const& spec_;
  Groups const& groups_;
  Rank rank_;
  std::uint32_t index_;
  Group group_;
  std::uint32_t own_;  // place in the group
  Sink& sink_;
};

std::uint32_t rounds(Spec const& spec, Rank) {
  if (spec.ranks == 1) return 1;
  Groups const groups(spec);
  return 2 * groups.turns() + (groups.count() == 1 ? 0 : 3 * groups.count());
}

void emit(Spec const& spec, Rank rank, std::uint32_t round, Sink& sink) {
  if (spec.ranks == 1) return emit_alone(sink);
  Groups const groups(spec);
  View const view(spec, groups, rank, sink);
  auto const turns = groups.turns(), g = groups.count();
  if (round < turns) return view.reduce_in_group(round);
  round -= turns;
  if (g == 1) return view.spread_sums(round);
  if (round <= 2 * (g - 1)) {
    auto const distance = round / 2 + 1;
    if (round % 2 == 1) return view.send_partials(distance);
    if (distance > 1) view.add_partial(distance - 1);
    if (distance < g) view.encode_partials(distance);
    return;
  }
  round -= 2 * (g - 1) + 1;
  if (round == 0) return view.encode_result();
  if (round < g) return view.send_result(round);
  round -= g;
  if (round < turns) return view.spread_in_group(round);
  view.decode();
}

// Returns one group, uneven groups, and groups of single ranks.
std::vector<Shape> shapes(std::uint32_t ranks) {
  std::vector<Shape> shapes{{ranks}};
  if (ranks > 2) shapes.push_back({1, ranks - 2, 1});
  if (ranks > 4) shapes.push_back({2, ranks - 2});
  if (ranks > 1) shapes.push_back(Shape(ranks, 1));
  return shapes;
}

}  // namespace

plan::Algorithm const grouped_allpairs{
    .name = "grouped_allpairs",
    .summary = "allpairs in g groups of s ranks and between them: 2(g-1)/p n bytes out of a group, codes if asked for",
    .check = check,
    .chunks = chunks,
    .scratch_chunks = scratch_chunks,
    .rounds = rounds,
    .emit = emit,
    .shapes = shapes,
    .coded_from = coded_from,
};

}  // namespace chorus::algorithms
