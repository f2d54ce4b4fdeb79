#include "collectives/model/choice/compressions.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "collectives/model/choice/learned_costs.hpp"
#include "collectives/model/choice/racks_for_tests.hpp"
#include "collectives/model/codec.hpp"
#include "collectives/plan/sizes/codes.hpp"

using namespace chorus;
using namespace chorus::model;

namespace {

std::vector<std::string> names(Alternatives const& alternatives) {
  std::vector<std::string> names;
  for (auto const& sent : alternatives.sent) names.push_back(sent ? to_string(*sent) : "elements");
  return names;
}

using Names = std::vector<std::string>;
auto const bf16_or_int8 = CompressionWish::automatic({WireFormat::int8, WireFormat::bf16});

// The decision for an all_reduce of so many floats over four ranks.
Sent decided(CompressionWish const& wish, std::uint64_t elements, Constants const& constants) {
  auto const localities = racks(2);
  std::vector<Sent> considered;
  for (auto const& sent : alternatives(wish, Dtype::f32, localities).sent) {
    bool const is_carried = sent && !sent->between;
    auto const priced = is_carried ? plan::carriers_of(sent->format, Op::all_reduce, 4, {elements, {}, {}}) : elements;
    auto const size = is_carried ? element_bytes(carrier_of(sent->format)) : sizeof(float);
    considered.push_back({sent, select(wish_for({}, sent), localities, priced, size, constants).value()});
  }
  sort_by_cost(considered);
  return considered.front();
}

}  // namespace

TEST_CASE("auto considers elements and the formats that the caller allows and the dtype has, and no other") {
  CHECK(names(alternatives(bf16_or_int8, Dtype::f32, racks(2))) == Names{"elements", "bf16", "int8"});
  CHECK(names(alternatives(CompressionWish::automatic(), Dtype::f64, racks(2))) == Names{"elements", "bf16"});
  CHECK(names(alternatives(bf16_or_int8, Dtype::bf16, racks(2))) == Names{"elements", "int8"});
  auto const between = CompressionWish::automatic({WireFormat::int8}, Level::rack);
  CHECK(names(alternatives(between, Dtype::f32, racks(2))) == Names{"elements", "int8 between racks"});
  auto const integers = alternatives(bf16_or_int8, Dtype::i32, racks(2));
  CHECK(names(integers) == Names{"elements"});
  CHECK(integers.why_only_elements == "i32 has no codes of a format allowed");
}

TEST_CASE("auto considers no codes on one host, nor between the groups of a level that has one group") {
  std::vector<Locality> const one_host(3, Locality{"", "", "", "h"});
  auto const shared = alternatives(bf16_or_int8, Dtype::f32, one_host);
  CHECK(names(shared) == Names{"elements"});
  CHECK(shared.why_only_elements == "all ranks are on one host");
  auto const between = CompressionWish::automatic({WireFormat::int8}, Level::rack);
  CHECK(alternatives(between, Dtype::f32, racks(1)).why_only_elements == "all ranks are in one rack");
  CHECK(names(alternatives(bf16_or_int8, Dtype::f32, racks(1))).size() == 3);
}

TEST_CASE("a compression that is asked for has no alternative, and neither has none") {
  CHECK(names(alternatives(CompressionWish(WireFormat::int8), Dtype::i32, racks(2))) == Names{"int8"});
  CHECK(names(alternatives({}, Dtype::f32, racks(2))) == Names{"elements"});
}

TEST_CASE("on slow links auto takes the fewest bytes that are allowed, on fast ones elements") {
  constexpr std::uint64_t floats = 1 << 22;
  CHECK(decided(bf16_or_int8, floats, with_links(1e8)).compression == Compression(WireFormat::int8));
  CHECK(decided(CompressionWish::automatic(), floats, with_links(1e8)).compression == Compression(WireFormat::bf16));
  CHECK_FALSE(decided(bf16_or_int8, floats, with_links(1e12)).compression.has_value());
  // A block of 256 bytes for every float.
  CHECK_FALSE(decided(CompressionWish::automatic({WireFormat::int8}), 4, with_links(1e6)).compression.has_value());
}

TEST_CASE("between slow racks of fast links auto takes codes between them") {
  auto constants = with_links(1e10);
  constants.level[static_cast<std::size_t>(Level::zone)].beta_s_per_byte = 1e-7;
  constants.uplink_s_per_byte[static_cast<std::size_t>(Level::rack)] = 1e-7;
  auto const wish = CompressionWish::automatic({WireFormat::bf16, WireFormat::int8}, Level::rack);
  auto const sent = decided(wish, 1 << 20, constants);
  CHECK(sent.compression == Compression(WireFormat::int8, Level::rack));
  CHECK(sent.choice.spec.algorithm == "grouped_allpairs");
}

TEST_CASE("slower conversion makes codes more expensive, by what a rank encodes and decodes") {
  auto const localities = racks(2);
  auto constants = with_links(1e9);
  auto& int8 = constants.codec[static_cast<std::size_t>(WireFormat::int8)];
  int8 = {1e-9, 2e-9, 0};
  constexpr std::uint64_t blocks = 1000;
  constexpr double bytes = blocks * 252 * 4;
  Network const network(localities, constants);
  CHECK(conversion_s(network, WireFormat::int8, Op::all_reduce, blocks) == doctest::Approx(bytes * 3e-9));
  CHECK(conversion_s(network, WireFormat::int8, Op::reduce_scatter, blocks) == doctest::Approx(bytes * 1.5e-9));
  CHECK(conversion_s(network, WireFormat::int8, Op::all_gather, blocks) == doctest::Approx(bytes * 2.25e-9));
  auto const seconds = [&](Constants const& by) {
    return select(wish_for({}, WireFormat::int8), localities, blocks, 256, by).value().cost.seconds;
  };
  auto const before_s = seconds(constants);
  int8.encode_s_per_byte += 1e-9;
  CHECK(seconds(constants) == doctest::Approx(before_s + bytes * 1e-9));
  int8.add_s_per_byte += 1e-9;
  CHECK(seconds(constants) > before_s + bytes * 1.5e-9);
}

TEST_CASE("the reason compares what was considered, the fastest first, and says why there are no codes") {
  auto const choice = [](char const* algorithm, double seconds) {
    Choice made;
    made.spec.algorithm = algorithm;
    made.cost.seconds = made.model_seconds = seconds;
    made.reason = "predicted by " + std::string(algorithm);
    return made;
  };
  std::vector<Sent> considered{{std::nullopt, choice("ring", 2e-3)},
                               {Compression(WireFormat::bf16), choice("allpairs", 2e-3)},
                               {Compression(WireFormat::int8), choice("allpairs", 1e-3)}};
  sort_by_cost(considered);
  CHECK(reason(considered, "") ==
        "codes of int8: predicted by allpairs; elements: 2.00 ms by ring; codes of bf16: 2.00 ms by allpairs");
  CHECK(reason(std::span(considered).subspan(1, 1), "all ranks are on one host") ==
        "elements: predicted by ring; codes are not considered: all ranks are on one host");
}

TEST_CASE("the format that ran first is not favoured, though its runs took less time than the model has") {
  Constants const slow = with_links(1e7);
  auto const wide = decided(bf16_or_int8, 1 << 20, slow);
  REQUIRE(wide.compression == Compression(WireFormat::int8));
  auto const localities = racks(2);
  auto const bf16 = wish_for({}, WireFormat::bf16);
  auto ran = select(bf16, localities, 1 << 20, 2, slow).value();
  LearnedCosts learned;
  LearnedCosts::Place const place{"g", 1, Op::all_reduce, 2 << 20, Compression(WireFormat::bf16)};
  for (int run = 0; run < 3; ++run) learned.finished(place, ran.spec, ran.cost.seconds, ran.cost.seconds / 100);
  ran = learned.corrected(place, ran, true);
  REQUIRE(ran.cost.seconds < wide.choice.cost.seconds);
  std::vector<Sent> considered{{Compression(WireFormat::bf16), ran}, wide};
  sort_by_cost(considered);
  CHECK(considered.front().compression == Compression(WireFormat::int8));
}

TEST_CASE("members' calls take the table's algorithm for codes if it adds in one place, otherwise one that does") {
  CHECK(algorithm_of_codes(Op::all_reduce, "ring", 4) == "allpairs");
  CHECK(algorithm_of_codes(Op::all_reduce, "mesh", 4) == "mesh");
  CHECK(algorithm_of_codes(Op::reduce, "tree", 4) == "centralized");
  CHECK(algorithm_of_codes(Op::reduce_scatter, "ring", 4) == "direct");
  CHECK(algorithm_of_codes(Op::all_gather, "ring", 4) == "ring");
}
