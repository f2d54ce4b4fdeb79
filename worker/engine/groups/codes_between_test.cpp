// Collectives whose messages between groups of ranks are codes: the bits that the documentation defines, on every rank,
// the bound of the error, and what happens when a rank is lost in the middle.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "collectives/algorithms/catalogue.hpp"
#include "collectives/algorithms/representative.hpp"
#include "tests/support/mentions.hpp"
#include "worker/engine/groups/hard_values_for_tests.hpp"
#include "worker/engine/testing/failing_runs.hpp"
#include "worker/engine/testing/loopback_fleet.hpp"
#include "worker/engine/testing/tcp_fleet.hpp"

using namespace chorus;
using namespace chorus::engine;
using namespace chorus::engine::testing;
using chorus::testing::mentions;
using plan::Rank;

namespace {

using plan::Shape;

// An all_reduce of T with codes between the groups of the case's shape.
template <class T>
class Coded {
 public:
  Coded(Fleet& fleet, Case c, WireFormat format)
      : case_(std::move(c)), format_(format), ranks_(fleet.ranks()), collective_(fleet, case_, fleet.now()) {
    by_position_ = case_.by_position;
    if (by_position_.empty()) {
      by_position_.resize(ranks_);
      std::iota(by_position_.begin(), by_position_.end(), 0);
    }
    for (Rank rank = 0; rank < ranks_; ++rank) {
      auto& spec = collective_.spec(rank);
      spec.codes = format;
      auto const& whole = inputs_.emplace_back(input_of(rank));
      outputs_.push_back(case_.in_place ? whole : std::vector<T>(whole.size(), T{-7}));
    }
    for (Rank rank = 0; rank < ranks_; ++rank) {
      auto& spec = collective_.spec(rank);
      spec.output = std::as_writable_bytes(std::span(outputs_[rank]));
      spec.input = case_.in_place ? spec.output : std::as_bytes(std::span(inputs_[rank]));
    }
  }

  [[nodiscard]] Collective& collective() { return collective_; }
  [[nodiscard]] bool run() { return collective_.run(); }

  // Empty, or what is wrong.
  [[nodiscard]] std::string wrong() {
    auto const what = to_string(case_) + " as " + std::string(name(format_)) + " of " + std::to_string(ranks_);
    auto const expected = expected_result();
    if (auto const element = beyond_bound(expected); !element.empty())
      return what + " is beyond the bound at " + element;
    for (Rank rank = 0; rank < ranks_; ++rank) {
      auto const who = what + ", rank " + std::to_string(rank) + ": ";
      auto const& status = collective_.result(rank).status;
      if (status.has_error()) return who + status.error().detail;
      for (std::size_t i = 0; i < expected.size(); ++i)
        if (outputs_[rank][i] != expected[i]) return who + "differs at element " + std::to_string(i);
    }
    return {};
  }

 private:
  [[nodiscard]] std::vector<T> input_of(Rank rank) const {
    auto const values = vector_of(rank, case_.elements);
    return {values.begin(), values.end()};
  }

  [[nodiscard]] std::vector<T> part_of(std::uint32_t position, plan::ElementRange range) const {
    auto const& whole = inputs_[by_position_[position]];
    return {whole.begin() + static_cast<long>(range.begin), whole.begin() + static_cast<long>(range.end)};
  }

  static void add(std::vector<T>& sum, std::vector<T> const& term) {
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += term[i];
  }

  // What the documentation says, for one chunk.
  [[nodiscard]] std::vector<T> chunk_of(std::uint32_t owner, plan::ElementRange range) const {
    std::vector<std::vector<T>> partials;
    std::size_t own = 0;
    std::uint32_t position = 0;
    for (std::size_t group = 0; group < case_.shape.size(); ++group) {
      auto partial = part_of(position, range);
      for (std::uint32_t member = 1; member < case_.shape[group]; ++member)
        add(partial, part_of(position + member, range));
      if (owner >= position && owner < position + case_.shape[group]) own = group;
      position += case_.shape[group];
      partials.push_back(std::move(partial));
    }
    auto sum = partials[own];
    auto const groups = partials.size();
    for (std::size_t distance = 1; distance < groups; ++distance)
      add(sum, through(format_, partials[(own + distance) % groups]));
    if (case_.reduce == ReduceOp::avg)
      for (auto& value : sum) value /= static_cast<T>(ranks_);
    return groups > 1 ? through(format_, sum) : sum;
  }

  // As documented: k for each rank.
  [[nodiscard]] std::uint32_t chunks() const {
    return ranks_ == 1 ? 1 : ranks_ * std::max(1U, std::min(6U, 48 / ranks_));
  }

  [[nodiscard]] std::vector<T> expected_result() const {
    plan::Layout const layout(case_.elements, chunks());
    std::vector<T> result;
    for (std::uint32_t i = 0; i < chunks(); ++i) {
      auto const chunk = chunk_of(i / (chunks() / ranks_), layout.range(i));
      result.insert(result.end(), chunk.begin(), chunk.end());
    }
    return result;
  }

  // The documented bound of a result of f32; m: largest magnitude that counts for the element.
  [[nodiscard]] double bound(double m) const {
    auto const one = one_encoding(format_);
    double const p = ranks_, g = static_cast<double>(case_.shape.size());
    auto const [least, most] = std::ranges::minmax(case_.shape);
    auto const s = (1 + one.c) * p * m + g * one.d, r = (most + g) * 0x1p-24 * s;
    if (case_.shape.size() == 1) return r + 0x1p-23 * m + 0x1p-150;  // an ordinary sum or average
    auto const e = one.c * ((p - least) * m + r) + (g - 1) * one.d + r;
    auto const of_sum = e + one.c * (p * m + e);
    return case_.reduce == ReduceOp::avg ? of_sum / p + one.d + 0x1p-23 * (m + e / p) + 0x1p-150 : of_sum + one.d;
  }

  // Empty, or the first element that is further from the exact one than documented.
  [[nodiscard]] std::string beyond_bound(std::vector<T> const& result) const {
    plan::Layout const layout(case_.elements, chunks());
    auto const unit = is_block(carrier_of(format_)) ? block_codes : 1;
    for (std::uint32_t chunk = 0; chunk < chunks(); ++chunk) {
      auto const range = layout.range(chunk);
      for (auto begin = range.begin; begin < range.end; begin += unit) {
        auto const end = std::min<std::uint64_t>(range.end, begin + unit);
        double largest = 0;
        for (Rank rank = 0; rank < ranks_; ++rank)
          for (auto i = begin; i < end; ++i) largest = std::max(largest, std::abs(double{value_of(rank, i)}));
        for (auto i = begin; i < end; ++i) {
          double exact = 0;
          for (Rank rank = 0; rank < ranks_; ++rank) exact += double{value_of(rank, i)};
          if (case_.reduce == ReduceOp::avg) exact /= ranks_;
          if (!(std::abs(exact - double{result[i]}) <= bound(largest))) return "element " + std::to_string(i);
        }
      }
    }
    return {};
  }

  Case const case_;
  WireFormat const format_;
  std::uint32_t const ranks_;
  std::vector<Rank> by_position_;
  std::vector<std::vector<T>> inputs_, outputs_;
  Collective collective_;
};

Case between(Shape shape, std::uint64_t elements) {
  Case c{.algorithm = &algorithms::grouped_allpairs, .shape = std::move(shape)};
  c.elements = elements;
  c.segment_bytes = 1024;
  return c;
}

template <class T>
void check(Fleet& fleet, Case const& c, WireFormat format) {
  Coded<T> coded(fleet, c, format);
  REQUIRE_MESSAGE(coded.run(), to_string(c), " of ", fleet.ranks(), " does not end");
  auto const wrong = coded.wrong();
  CHECK_MESSAGE(wrong.empty(), wrong);
}

// Every format, sums and averages, in place and not, f32 and f64, few elements and many.
void check_all(Fleet& fleet, Shape const& shape, std::uint64_t& run) {
  std::vector<std::vector<Rank>> orders{{}};
  for (auto const& order : algorithms::representative_orders(fleet.ranks())) orders.push_back(order);
  for (auto const format : all_wire_formats)
    for (auto const reduce : {ReduceOp::sum, ReduceOp::avg})
      for (bool const in_place : {false, true})
        for (auto const& order : orders) {
          auto c = between(shape, run % 3 == 0 ? 61 : 5003);
          c.by_position = order;
          c.reduce = reduce;
          c.in_place = in_place;
          c.run = ++run;
          if (run % 2 == 0) c.segment_bytes = 65536;
          check<float>(fleet, c, format);
          c.dtype = Dtype::f64;
          c.run = ++run;
          check<double>(fleet, c, format);
        }
}

}  // namespace

TEST_CASE("codes between groups give the documented bits on every rank, within the bound, in groups of any size") {
  std::uint64_t run = 0;
  for (auto const& shape : {Shape{1, 1}, Shape{2, 1}, Shape{3}, Shape{2, 2}, Shape{1, 3}, Shape{1, 1, 1, 1},
                            Shape{2, 3}, Shape{1, 3, 2}, Shape{2, 2, 2}}) {
    FleetOptions options;
    options.ranks = std::accumulate(shape.begin(), shape.end(), 0U);
    LoopbackFleet fleet(options);
    check_all(fleet, shape, run);
  }
}

TEST_CASE("codes between groups give the documented bits over a network that delays and splits the bytes") {
  std::uint64_t run = 0;
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    LoopbackFleet fleet(options_of(5, seed));
    check_all(fleet, {3, 2}, run);
  }
}

TEST_CASE("codes between groups give the documented bits over TCP") {
  TcpFleet fleet(4, {});
  std::uint64_t run = 0;
  check_all(fleet, {2, 2}, run);
}

TEST_CASE("with no elements, one, and fewer than ranks, all ranks have the same bits") {
  std::uint64_t run = 0;
  FleetOptions options;
  options.ranks = 5;
  LoopbackFleet fleet(options);
  for (std::uint64_t const elements : {0, 1, 4, 5, 252 * 5, 252 * 5 + 1})
    for (auto const format : all_wire_formats) {
      auto c = between({2, 3}, elements);
      c.run = ++run;
      check<float>(fleet, c, format);
    }
}

TEST_CASE("int8 between groups sends a quarter of the bytes, and members of a group send elements") {
  FleetOptions options;
  options.ranks = 4;
  LoopbackFleet fleet(options);
  constexpr std::uint64_t elements = 4 * 252 * 12;  // two blocks for each of a rank's six chunks
  Coded<float> coded(fleet, between({2, 2}, elements), WireFormat::int8);
  REQUIRE(coded.run());
  constexpr std::uint64_t elements_of_rank = 252 * 12 * sizeof(float), codes = 256 * 12;
  // A contribution to the peer's own chunks and to the foreign ones that the peer represents; partial sums and results
  // to the other group; results and foreign ones to the peer.
  for (Rank rank = 0; rank < 4; ++rank)
    CHECK(coded.collective().result(rank).statistics.bytes_sent == 2 * elements_of_rank + 4 * codes);
}

TEST_CASE("a connection that breaks at any moment fails a run with codes everywhere, and the next run works") {
  std::uint64_t cuts = 0;
  for (std::uint64_t n = 1;; n += 1 + n / 50) {
    LoopbackFleet fleet(options_of(3, n));
    fleet.network().cut_at_step(n);
    auto c = between({2, 1}, 3000);
    c.timeout = std::chrono::milliseconds(1000);
    bool failed = false;
    {
      Coded<float> coded(fleet, c, WireFormat::int8);
      REQUIRE_MESSAGE(coded.run(), "hangs after a cut at step ", n);
      for (Rank rank = 0; rank < 3; ++rank) {
        auto const& result = coded.collective().result(rank);
        if (result.status.has_value()) continue;
        failed = true;
        REQUIRE_MESSAGE(code_of(result) == EngineErrc::peer_lost, result.status.error().detail);
        REQUIRE(result.culprits.size() == 1);
        REQUIRE(mentions(result.status.error().detail, "lost rank " + std::to_string(result.culprits[0])));
      }
    }
    fleet.let_move();  // the memory of the run is gone now
    if (!fleet.network().has_cut()) break;
    cuts += failed;
    c.run = 2;
    check<float>(fleet, c, WireFormat::int8);
  }
  CHECK(cuts > 20);
}

TEST_CASE("ranks that differ in the format of the codes never exchange a byte of them") {
  FleetOptions options;
  options.ranks = 2;
  LoopbackFleet fleet(options);
  Coded<float> coded(fleet, between({1, 1}, 1000), WireFormat::int8);
  coded.collective().spec(1).codes = WireFormat::bf16;
  REQUIRE(coded.run());
  for (Rank rank = 0; rank < 2; ++rank) {
    auto const& result = coded.collective().result(rank);
    REQUIRE(result.status.has_error());
    CHECK(code_of(result) == EngineErrc::plan_mismatch);
  }
}

TEST_CASE("codes of other dtypes than f32 and f64 are refused before anything is sent") {
  FleetOptions options;
  options.ranks = 2;
  LoopbackFleet fleet(options);
  auto c = between({1, 1}, 100);
  c.dtype = Dtype::f16;
  Collective collective(fleet, c, fleet.now());
  for (Rank rank = 0; rank < 2; ++rank) collective.spec(rank).codes = WireFormat::int8;
  REQUIRE(collective.run());
  CHECK(mentions(collective.result(0).status.error().detail, "codes are of f32 or f64 in host memory"));
}
