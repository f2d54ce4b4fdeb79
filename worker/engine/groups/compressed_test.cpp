// Compressed collectives: the bits that the documentation defines, on every rank and by every algorithm that admits it,
// over links and in shared memory; and the bound of the error, on blocks that are hard to encode.
#include "worker/engine/groups/compressed.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "collectives/algorithms/catalogue.hpp"
#include "collectives/algorithms/representative.hpp"
#include "worker/engine/groups/hard_values_for_tests.hpp"
#include "worker/engine/testing/loopback_fleet.hpp"
#include "worker/engine/testing/shared_fleet.hpp"
#include "worker/engine/testing/tcp_fleet.hpp"

using namespace chorus;
using namespace chorus::engine;
using namespace chorus::engine::testing;
using plan::Rank;

namespace {

// The documented bound of a result; m: largest magnitude that counts for the element.
double bound_of(Case const& c, WireFormat format, std::uint32_t ranks, double m) {
  auto const one = one_encoding(format);
  auto const a = one.c * m + one.d;
  if (!reduces(c.op)) return a;
  double const p = ranks, s = p * (m + a), r = p * 0x1p-24 * s;
  auto const of_sum = p * a + r + one.c * (s + r);
  return c.reduce == ReduceOp::avg ? of_sum / p + one.d + 0x1p-23 * (m + a) + 0x1p-150 : of_sum + one.d;
}

class CompressedCase {
 public:
  CompressedCase(Fleet& fleet, Case c, WireFormat format)
      : case_(std::move(c)), format_(format), ranks_(fleet.ranks()), collective_(fleet, case_, fleet.now()) {
    auto const& program = *collective_.spec(0).program;
    compressed_.emplace(format, Dtype::f32, program.spec, collective_.spec(0).sizes);
    outputs_.resize(ranks_);
    codes_.resize(ranks_);
    for (Rank rank = 0; rank < ranks_; ++rank) set_up(collective_.spec(rank), rank);
  }

  [[nodiscard]] bool run() { return collective_.run(); }

  // Empty, or what is wrong.
  [[nodiscard]] std::string wrong() {
    auto const what = to_string(case_) + " as " + std::string(name(format_)) + " of " + std::to_string(ranks_);
    if (auto const element = beyond_bound(); !element.empty()) return what + " is beyond the bound at " + element;
    auto const layout = plan::Layout(case_.elements, ranks_);
    for (Rank rank = 0; rank < ranks_; ++rank) {
      auto const who = what + ", rank " + std::to_string(rank) + ": ";
      auto const& status = collective_.result(rank).status;
      if (status.has_error()) return who + status.error().detail;
      auto const output = std::as_writable_bytes(std::span(outputs_[rank]));
      if (output.empty()) continue;
      if (compressed_->decode(output, collective_.spec(rank).output, nullptr).has_error()) return who + "failed";
      bool const is_own = case_.op == Op::reduce_scatter;
      auto const begin = is_own ? layout.range(rank).begin : 0, end = is_own ? layout.range(rank).end : case_.elements;
      auto const in_output = is_own && case_.in_place ? begin : 0;
      for (auto i = begin; i < end; ++i)
        if (outputs_[rank][in_output + i - begin] != expected()[i])
          return who + "differs at element " + std::to_string(i);
    }
    return {};
  }

 private:
  void set_up(RunSpec& spec, Rank rank) {
    auto const elements = [](auto bytes) { return bytes.size() / sizeof(float); };
    bool const one_buffer = !spec.output.empty() && spec.input.data() == spec.output.data();
    auto const whole = vector_of(rank, case_.elements);
    auto const block = plan::Layout(case_.elements, ranks_).range(rank);
    outputs_[rank].resize(elements(spec.output));
    auto& codes = codes_[rank];
    codes.resize(compressed_->bytes(spec.input.size()) + compressed_->bytes(spec.output.size()));
    auto const in = std::span(codes).first(compressed_->bytes(spec.input.size()));
    Floats input = whole;
    if (elements(spec.input) != case_.elements)
      input = {whole.begin() + static_cast<long>(block.begin), whole.begin() + static_cast<long>(block.end)};
    if (!spec.input.empty() && compressed_->encode(in, std::as_bytes(std::span(input)), nullptr).has_error())
      FAIL("cannot be encoded");
    spec.dtype = compressed_->dtype();
    spec.output = one_buffer ? in : std::span(codes).subspan(in.size(), compressed_->bytes(spec.output.size()));
    spec.input = spec.input.empty() ? std::span<std::byte const>() : in;
    spec.sizes = compressed_->sizes();
  }

  // What the documentation says: contributions are encoded, decoded and added in f32 in the order of the ranks, and the
  // sum is encoded once.
  Floats const& expected() {
    if (!expected_.empty()) return expected_;
    plan::Layout const layout(case_.elements, ranks_);
    bool const blocks = has_blocks(case_.op);
    for (std::uint32_t part = 0; part < (blocks ? ranks_ : 1); ++part) {
      auto const range = blocks ? layout.range(part) : plan::ElementRange{0, case_.elements};
      auto const of_rank = [&](Rank rank) {
        auto const whole = vector_of(rank, case_.elements);
        return through(format_, Floats{whole.begin() + static_cast<long>(range.begin),
                                       whole.begin() + static_cast<long>(range.end)});
      };
      auto const ranks = contributors(part);
      auto sum = of_rank(ranks.front());
      if (reduces(case_.op)) {
        for (auto const rank : std::span(ranks).subspan(1)) {
          auto const next = of_rank(rank);
          for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += next[i];
        }
        if (case_.reduce == ReduceOp::avg)
          for (auto& value : sum) value /= static_cast<float>(ranks_);
        sum = through(format_, sum);
      }
      expected_.insert(expected_.end(), sum.begin(), sum.end());
    }
    return expected_;
  }

  // Ranks whose vectors count for the result's part.
  [[nodiscard]] std::vector<Rank> contributors(std::uint32_t part) const {
    if (case_.op == Op::all_gather) return {part};
    if (case_.op == Op::broadcast) return {case_.root};
    std::vector<Rank> all(ranks_);
    std::iota(all.begin(), all.end(), 0);
    return all;
  }

  // Empty, or the first element of the expected result that is further from the exact one than documented.
  [[nodiscard]] std::string beyond_bound() {
    plan::Layout const layout(case_.elements, ranks_);
    bool const in_parts = has_blocks(case_.op);
    auto const unit = is_block(carrier_of(format_)) ? block_codes : 1;
    for (std::uint32_t part = 0; part < (in_parts ? ranks_ : 1); ++part) {
      auto const range = in_parts ? layout.range(part) : plan::ElementRange{0, case_.elements};
      for (auto begin = range.begin; begin < range.end; begin += unit) {
        auto const end = std::min<std::uint64_t>(range.end, begin + unit);
        double largest = 0;
        for (auto const rank : contributors(part))
          for (auto i = begin; i < end; ++i) largest = std::max(largest, std::abs(double{value_of(rank, i)}));
        auto const bound = bound_of(case_, format_, ranks_, largest);
        for (auto i = begin; i < end; ++i) {
          double exact = 0;
          for (auto const rank : contributors(part)) exact += double{value_of(rank, i)};
          if (reduces(case_.op) && case_.reduce == ReduceOp::avg) exact /= ranks_;
          if (!(std::abs(exact - double{expected()[i]}) <= bound)) return "element " + std::to_string(i);
        }
      }
    }
    return {};
  }

  Case const case_;
  WireFormat const format_;
  std::uint32_t const ranks_;
  Collective collective_;
  std::optional<Compressed> compressed_;
  std::vector<Floats> outputs_;
  std::vector<std::vector<std::byte>> codes_;
  Floats expected_;
};

constexpr std::uint32_t ranks_max = 5;

void check_all(Fleet& fleet) {
  std::uint64_t run = 0;
  for (auto const op : {Op::all_reduce, Op::reduce, Op::reduce_scatter, Op::all_gather, Op::broadcast})
    for (auto const* algorithm : algorithms::all_for(op))
      for (auto const& spec : algorithms::representative_specs(*algorithm, op, fleet.ranks()))
        for (auto const reduce : {ReduceOp::sum, ReduceOp::avg})
          for (auto const format : all_wire_formats) {
            if (check_compression(format, reduce, Dtype::f32, *algorithm, spec).has_error()) continue;
            if (!reduces(op) && reduce == ReduceOp::avg) continue;
            Case c{.algorithm = algorithm, .op = op, .root = spec.root, .arity = spec.arity, .shape = spec.shape};
            c.reduce = reduce;
            c.elements = run % 3 == 0 ? 61 : 3001;
            c.in_place = spec.in_place;
            c.segment_bytes = 512;
            c.run = ++run;
            CompressedCase compression(fleet, c, format);
            REQUIRE_MESSAGE(compression.run(), to_string(c), " of ", fleet.ranks(), " does not end");
            auto const wrong = compression.wrong();
            CHECK_MESSAGE(wrong.empty(), wrong);
          }
  CHECK(run > 100);
}

}  // namespace

TEST_CASE("over loopback, compressed collectives give the documented bits on every rank, within the bound" *
          doctest::test_suite("exhaustive")) {
  for (std::uint32_t ranks = 2; ranks <= ranks_max; ++ranks) {
    FleetOptions options;
    options.ranks = ranks;
    LoopbackFleet fleet(options);
    check_all(fleet);
  }
}

TEST_CASE("over shared memory, compressed collectives give the documented bits on every rank, within the bound" *
          doctest::test_suite("exhaustive")) {
  for (std::uint32_t ranks = 2; ranks <= ranks_max; ++ranks) {
    SharedFleetOptions options;
    options.ranks = ranks;
    SharedFleet fleet(options);
    check_all(fleet);
  }
}

TEST_CASE("over TCP, compressed collectives give the documented bits on every rank, within the bound" *
          doctest::test_suite("exhaustive")) {
  TcpFleet fleet(3, {});
  check_all(fleet);
}

TEST_CASE("what cannot be compressed is refused with its name") {
  auto const why = [](WireFormat format, Op op, ReduceOp reduce, Dtype dtype, plan::Algorithm const& algorithm) {
    plan::Spec const spec{.op = op, .algorithm = std::string(algorithm.name), .ranks = 4};
    auto const status = check_compression(format, reduce, dtype, algorithm, spec);
    return status.has_error() ? status.error().detail : std::string();
  };
  using enum WireFormat;
  CHECK(why(int8, Op::all_reduce, ReduceOp::avg, Dtype::f64, algorithms::mesh).empty());
  CHECK(why(int8, Op::all_gather, ReduceOp::sum, Dtype::f32, algorithms::ring).empty());
  CHECK(why(int8, Op::all_reduce, ReduceOp::sum, Dtype::i32, algorithms::mesh).find("i32 has no such codes") !=
        std::string::npos);
  CHECK(why(bf16, Op::all_reduce, ReduceOp::sum, Dtype::f16, algorithms::mesh).find("f16 has no such codes") !=
        std::string::npos);
  CHECK(why(int8, Op::all_reduce, ReduceOp::prod, Dtype::f32, algorithms::mesh).find("of prod has no bound") !=
        std::string::npos);
  CHECK(why(int8, Op::all_reduce, ReduceOp::sum, Dtype::f32, algorithms::ring).find("ring does not add") !=
        std::string::npos);
  CHECK(why(int8, Op::all_to_all, ReduceOp::sum, Dtype::f32, algorithms::direct).find("all_to_all has none") !=
        std::string::npos);
}
