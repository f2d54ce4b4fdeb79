// grouped_allpairs: allpairs in every group, then between the groups, and back. Where a run has a format, the messages
// between groups are codes (Program::coded_from).
//
// The vector is cut into pieces, and a rank owns a chunk of each. In every group one member represents each owner: the
// owner itself, or in other groups the members in turn. The members send their contributions to the representatives,
// which add them in rank order. Each representative encodes its partial sum and sends it to the owner. The owner
// decodes the partial sums and adds them to that of its own group: first the next group's, then the one after that, and
// so on. It encodes the sum once. The codes go to the representatives and on to all members, and every rank decodes the
// same codes.
//
// The results of one piece cross between the groups while contributions to the next ones travel inside: with one piece,
// nothing returns before nearly all contributions have been added, and the links between the groups wait. The chunks of
// short pieces are eager: the later members of a sum need not wait for grants, which queue behind data.
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
#include <array>
#include <numeric>

#include "collectives/algorithms/common/common.hpp"
#include "collectives/algorithms/grouped/algorithms.hpp"
#include "collectives/algorithms/grouped/levels.hpp"

namespace chorus::algorithms {
namespace {

using plan::Final, plan::input, plan::output, plan::Rank, plan::scratch, plan::Shape, plan::Sink, plan::Slice,
    plan::Spec;

// About so many chunks overlap well; more of them cost messages.
constexpr std::uint32_t enough_chunks = 48, most_pieces = 6;

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

// Chunks that a rank owns.
std::uint32_t pieces(Spec const& spec) {
  return spec.ranks == 1 ? 1 : std::clamp(enough_chunks / spec.ranks, 1U, most_pieces);
}

std::uint32_t chunks(Spec const& spec) { return spec.ranks * pieces(spec); }

// Scratch: sums in place, then a chunk of codes for every chunk.
std::uint32_t coded_from(Spec const& spec) { return spec.in_place ? chunks(spec) : 0; }

std::uint32_t scratch_chunks(Spec const& spec, Rank) { return spec.ranks == 1 ? 0 : coded_from(spec) + chunks(spec); }

struct Group {
  Rank begin = 0;
  std::uint32_t size = 0;

  [[nodiscard]] bool has(Rank rank) const { return rank >= begin && rank - begin < size; }
};

// The groups, as one rank sees them.
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

  // Representative in a group of an owner's chunks.
  [[nodiscard]] Rank representative(Group group, Rank owner) const {
    if (group.has(owner)) return owner;
    auto const nth = owner < group.begin ? owner : owner - group.size;
    return group.begin + nth % group.size;
  }

 private:
  Shape shape_;
  std::uint32_t turns_;
};

// One rank's view of a round of one piece. A chunk of the piece has the number of its owner.
class View {
 public:
  View(Spec const& spec, Groups const& groups, std::uint32_t piece, Rank rank, Sink& sink)
      : spec_(spec),
        groups_(groups),
        piece_(piece),
        rank_(rank),
        index_(groups.index_of(rank)),
        group_(groups.group(index_)),
        own_(rank - group_.begin),
        sink_(sink) {}

  // Members whose places add to `turn` meet: each sends its contributions to the chunks that the other represents.
  void reduce_in_group(std::uint32_t turn) const {
    if (turn < own_ || turn - own_ >= group_.size) return;
    auto const peer = turn - own_;
    if (peer != own_) for_each_foreign(peer, [&](Rank chunk) { sink_.send(group_.begin + peer, input_of(chunk)); });
    if (peer != own_) sink_.send(group_.begin + peer, input_of(group_.begin + peer));
    for_each_foreign(own_, [&](Rank chunk) { take(chunk, peer); });
    take(rank_, peer);
  }

  // Partial sums: 2 g - 1 rounds for g groups.
  void cross(std::uint32_t round) const {
    auto const distance = round / 2 + 1;
    if (round % 2 == 1) return send_partials(distance);
    if (distance > 1) sink_.reduce(codes(rank_), sum(rank_), distance == groups_.count() ? Final::yes : Final::no);
    if (distance < groups_.count())
      for_each_represented(distance, [this](Rank chunk) { sink_.copy(partial(chunk), codes(chunk)); });
  }

  // The result: g rounds, in the first of which it is encoded.
  void return_result(std::uint32_t distance) const {
    if (distance == 0) return sink_.copy(sum(rank_), codes(rank_));
    sink_.send(representative_after(distance), codes(rank_));
    for_each_represented(distance, [this](Rank chunk) { sink_.recv(chunk, codes(chunk)); });
  }

  // To the other members. The own chunk is complete first. Sums of a single group never become codes.
  void spread(std::uint32_t turn) const {
    if (turn < own_ || turn - own_ >= group_.size || turn - own_ == own_) return;
    auto const peer = turn - own_, there = group_.begin + peer;
    auto const result = [&](Rank chunk) { return groups_.count() == 1 ? output_of(chunk) : codes(chunk); };
    sink_.send(there, result(rank_));
    for_each_foreign(own_, [&](Rank chunk) { sink_.send(there, result(chunk)); });
    sink_.recv(there, result(there));
    for_each_foreign(peer, [&](Rank chunk) { sink_.recv(there, result(chunk)); });
  }

  void decode() const {
    for (Rank chunk = 0; chunk < spec_.ranks; ++chunk) sink_.copy(codes(chunk), output_of(chunk));
  }

 private:
  // Sends the partial sums of the chunks that are owned `distance` groups before this one.
  void send_partials(std::uint32_t distance) const {
    for_each_represented(distance, [this](Rank chunk) { sink_.send(chunk, codes(chunk)); });
    sink_.recv(representative_after(distance), codes(rank_));
  }

  // Number of a chunk in the vector.
  [[nodiscard]] std::uint32_t at(Rank chunk) const { return chunk * pieces(spec_) + piece_; }
  [[nodiscard]] Slice input_of(Rank chunk) const { return input(at(chunk)); }
  [[nodiscard]] Slice output_of(Rank chunk) const { return output(at(chunk)); }
  [[nodiscard]] bool sums_in_scratch() const { return spec_.in_place && group_.size > 1; }
  [[nodiscard]] Slice sum(Rank chunk) const { return sums_in_scratch() ? scratch(at(chunk)) : output_of(chunk); }
  [[nodiscard]] Slice codes(Rank chunk) const { return scratch(coded_from(spec_) + at(chunk)); }
  [[nodiscard]] Slice partial(Rank chunk) const { return group_.size > 1 ? sum(chunk) : input_of(chunk); }

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
    auto const to = is_all ? output_of(chunk) : sum(chunk);
    if (group_.size == 1) {
      if (chunk == rank_) sink_.copy(input_of(chunk), to);
    } else if (member == own_ && member > 0) {
      sink_.reduce(input_of(chunk), sum(chunk), final);
      if (is_all && sums_in_scratch()) sink_.copy(sum(chunk), to);
    } else if (member == 0 && member != own_) {
      sink_.recv(peer, sum(chunk));
    } else if (member > 0) {
      sink_.recv_reduce(peer, own_ == 0 && member == 1 ? input_of(chunk) : sum(chunk), to, final);
    }
  }

  Spec const& spec_;
  Groups const& groups_;
  std::uint32_t piece_;
  Rank rank_;
  std::uint32_t index_;
  Group group_;
  std::uint32_t own_;  // place in the group
  Sink& sink_;
};

// The rounds of a piece: four steps, of which each begins when the one before it has ended. The next piece follows as
// soon as the longest step has ended.
class Rounds {
 public:
  Rounds(Spec const& spec, Groups const& groups)
      : pieces_(pieces(spec)), is_coded_(groups.count() > 1), turns_(groups.turns()) {
    auto const g = groups.count();
    length_ = {turns_, is_coded_ ? 2 * g - 1 : 0, is_coded_ ? g : 0, turns_};
    for (std::size_t step = 1; step < steps; ++step) begin_[step] = begin_[step - 1] + length_[step - 1];
    period_ = *std::ranges::max_element(length_);
  }

  // The last one decodes.
  [[nodiscard]] std::uint32_t count() const { return (pieces_ - 1) * period_ + begin_.back() + turns_ + 1; }

  void emit(Spec const& spec, Groups const& groups, Rank rank, std::uint32_t round, Sink& sink) const {
    if (round + 1 == count()) {
      for (std::uint32_t piece = 0; piece < pieces_ && is_coded_; ++piece)
        View(spec, groups, piece, rank, sink).decode();
      return;
    }
    constexpr std::array act{&View::reduce_in_group, &View::cross, &View::return_result, &View::spread};
    for (std::size_t step = 0; step < steps; ++step) {
      if (round < begin_[step]) break;
      auto const piece = (round - begin_[step]) / period_, within = (round - begin_[step]) % period_;
      if (piece < pieces_ && within < length_[step]) (View(spec, groups, piece, rank, sink).*act[step])(within);
    }
  }

 private:
  static constexpr std::size_t steps = 4;

  std::uint32_t pieces_;
  bool is_coded_;
  std::uint32_t turns_;
  std::array<std::uint32_t, steps> length_{}, begin_{};  // of the first piece
  std::uint32_t period_ = 0;
};

std::uint32_t rounds(Spec const& spec, Rank) { return spec.ranks == 1 ? 1 : Rounds(spec, Groups(spec)).count(); }

void emit(Spec const& spec, Rank rank, std::uint32_t round, Sink& sink) {
  if (spec.ranks == 1) return emit_alone(sink);
  Groups const groups(spec);
  Rounds(spec, groups).emit(spec, groups, rank, round, sink);
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
