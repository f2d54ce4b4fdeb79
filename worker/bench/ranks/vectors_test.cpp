// Inputs and expected outputs of all ranks match.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "worker/bench/ranks/vectors.hpp"

using namespace chorus;
using namespace chorus::bench;

namespace {

using Elements = std::vector<std::uint32_t>;

Elements elements(std::span<std::byte const> bytes) {
  Elements values(bytes.size() / 4);
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

// The vectors of all ranks, and a collective done by copying.
class Stage {
 public:
  Stage(Op op, std::uint32_t ranks, plan::Rank root, std::uint64_t elements_each)
      : task_{op, Dtype::u32, elements_each * ranks, root}, block_(elements_each) {
    for (plan::Rank rank = 0; rank < ranks; ++rank) all_.emplace_back(task_, rank, ranks);
  }

  Elements input(plan::Rank rank, std::uint64_t turn) const { return elements(all_[rank].input(turn)); }
  Elements block(plan::Rank of, plan::Rank block, std::uint64_t turn) const {
    auto const whole = input(of, turn);
    auto const begin = whole.begin() + static_cast<std::ptrdiff_t>(block * block_);
    return {begin, begin + static_cast<std::ptrdiff_t>(block_)};
  }
  bool accepts(plan::Rank rank, std::uint64_t turn, Elements const& result) {
    auto const output = all_[rank].output();
    if (output.size() != result.size() * 4) return false;
    if (!result.empty()) std::memcpy(output.data(), result.data(), output.size());
    return all_[rank].is_right(turn);
  }

 private:
  Task const task_;
  std::uint64_t const block_;
  std::vector<Vectors> all_;
};

void append(Elements& to, Elements const& from) { to.insert(to.end(), from.begin(), from.end()); }

}  // namespace

TEST_CASE("sums: all_reduce, reduce, reduce_scatter") {
  for (auto const op : {Op::all_reduce, Op::reduce, Op::reduce_scatter}) {
    Stage stage(op, 9, 4, 10);
    for (std::uint64_t turn : {0, 1, 2}) {
      Elements sum(90);
      for (plan::Rank rank = 0; rank < 9; ++rank) {
        auto const input = stage.input(rank, turn);
        REQUIRE(input.size() == 90);
        for (std::size_t i = 0; i < 90; ++i) sum[i] += input[i];
      }
      for (plan::Rank rank = 0; rank < 9; ++rank) {
        auto own = sum;
        if (op == Op::reduce && rank != 4) own.clear();
        if (op == Op::reduce_scatter) own = {sum.begin() + rank * 10, sum.begin() + rank * 10 + 10};
        CHECK(stage.accepts(rank, turn, own));
        if (own.empty()) continue;
        CHECK_FALSE(stage.accepts(rank, turn + 1, own));  // left over from the iteration before
        own.back() ^= 1;
        CHECK_FALSE(stage.accepts(rank, turn, own));
      }
    }
  }
}

TEST_CASE("from the root: broadcast and scatter") {
  Stage broadcast(Op::broadcast, 5, 3, 4), scatter(Op::scatter, 5, 3, 4);
  for (plan::Rank rank = 0; rank < 5; ++rank) {
    CHECK(broadcast.input(rank, 0).empty() == (rank != 3));
    CHECK(broadcast.accepts(rank, 1, broadcast.input(3, 1)));
    CHECK_FALSE(broadcast.accepts(rank, 1, broadcast.input(3, 0)));
    CHECK(scatter.accepts(rank, 0, scatter.block(3, rank, 0)));
    CHECK_FALSE(scatter.accepts(rank, 0, scatter.block(3, (rank + 1) % 5, 0)));
  }
}

TEST_CASE("blocks side by side: all_gather, gather, barrier") {
  for (auto const op : {Op::all_gather, Op::gather}) {
    Stage stage(op, 5, 2, 3);
    Elements whole;
    for (plan::Rank rank = 0; rank < 5; ++rank) append(whole, stage.input(rank, 0));
    CHECK(whole.size() == 15);
    for (plan::Rank rank = 0; rank < 5; ++rank)
      CHECK(stage.accepts(rank, 0, op == Op::gather && rank != 2 ? Elements{} : whole));
    std::swap(whole[0], whole[14]);
    CHECK_FALSE(stage.accepts(2, 0, whole));
  }
  auto const task = make_task(Op::barrier, Dtype::f32, 4, 6, 0);
  CHECK(Vectors(task, 5, 6).input(0).size() == 1);
  CHECK(Vectors(task, 5, 6).output().size() == 6);
}

TEST_CASE("every rank to every rank: all_to_all") {
  Stage stage(Op::all_to_all, 4, 0, 3);
  for (plan::Rank rank = 0; rank < 4; ++rank) {
    Elements own, transposed;
    for (plan::Rank from = 0; from < 4; ++from) {
      append(own, stage.block(from, rank, 1));
      append(transposed, stage.block(rank, from, 1));
    }
    CHECK(stage.accepts(rank, 1, own));
    CHECK_FALSE(stage.accepts(rank, 1, transposed));
  }
}
