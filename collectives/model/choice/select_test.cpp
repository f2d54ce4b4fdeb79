#include "collectives/model/choice/select.hpp"
#include "collectives/model/choice/shared_memory.hpp"
#include "collectives/model/extra_memory.hpp"

#include <doctest/doctest.h>

#include "collectives/algorithms/catalogue.hpp"
#include "collectives/core/errc.hpp"

using namespace chorus;
using namespace chorus::model;

namespace {

Choice chosen(Wish const& wish, std::vector<Locality> const& localities, std::uint64_t bytes) {
  return select(wish, localities, bytes, 1, Constants::defaults()).value();
}

std::error_code error(Wish const& wish, std::size_t ranks) {
  return select(wish, std::vector<Locality>(ranks), 1, 1, Constants::defaults()).error().code;
}

std::vector<Locality> hosts(std::uint32_t count, std::uint32_t workers_each) {
  std::vector<Locality> localities;
  for (std::uint32_t h = 0; h < count; ++h)
    for (std::uint32_t w = 0; w < workers_each; ++w) localities.push_back({"eu", "z", "r", std::to_string(h)});
  return localities;
}

}  // namespace

TEST_CASE("callers that read each other's memory take mesh for short vectors and allpairs for long ones") {
  bool const in_place = true;
  CHECK(model::shared_memory_all_reduce(2, (1 << 20) - 4, !in_place) == "mesh");
  CHECK(model::shared_memory_all_reduce(2, 1 << 20, !in_place) == "allpairs");
  CHECK(model::shared_memory_all_reduce(8, 65532, !in_place) == "mesh");
  CHECK(model::shared_memory_all_reduce(8, 65536, !in_place) == "allpairs");
  CHECK(model::shared_memory_all_reduce(1, 1 << 20, !in_place) == "mesh");
  CHECK(model::shared_memory_all_reduce(65536, 4, !in_place) == "allpairs");
  CHECK(model::shared_memory_all_reduce(2, 2048, in_place) == "mesh");
  CHECK(model::shared_memory_all_reduce(2, 2049, in_place) == "allpairs");
  CHECK(model::shared_memory_all_reduce(8, 4, in_place) == "mesh");
}

TEST_CASE("plans for long vectors send few bytes per rank, and plans for short ones have few latencies") {
  for (std::uint32_t const p : {8u, 16u, 64u, 1000u}) {
    auto const apart = chosen({}, hosts(p, 1), 1 << 30);
    CHECK(double(apart.cost.bytes_per_rank) < 1.01 * double(lower_bound(Op::all_reduce, p, 1 << 30).bytes_per_rank));
    // At most the latencies of recursive doubling, though perhaps more messages at once.
    auto const latency_s = Constants::defaults().level[static_cast<std::size_t>(Level::rack)].alpha_s;
    CHECK(chosen({}, hosts(p, 1), 4).cost.seconds <= 2 * latency_s * lower_bound(Op::all_reduce, p, 4).rounds);
    CHECK(chosen({}, hosts(1, p), 4).cost.seconds <=
          chosen({.algorithm = "recursive_doubling"}, hosts(1, p), 4).cost.seconds);
  }
}

TEST_CASE("of an algorithm's shapes the one that follows the hosts is the cheapest") {
  auto const slow_outside = topology::parse_shape("hosts:2x16;rack=100us,1Gbit/s").value();
  auto const constants = overridden(Constants::defaults(), slow_outside);
  auto const best_shape = [&](std::string const& algorithm, std::uint64_t bytes) {
    return select({.algorithm = algorithm}, slow_outside.localities, bytes, 1, constants).value().spec.shape;
  };
  CHECK(best_shape("hierarchical", 64 << 10) == plan::Shape(2, 16));
  CHECK(best_shape("torus_2d", 64 << 20) == plan::Shape{2, 16});
}

TEST_CASE("the choice is the cheapest candidate, and the reason names it and the next") {
  auto const choice = chosen({}, hosts(2, 4), 64 << 20);
  CHECK(choice.considered.size() > algorithms::all_for(Op::all_reduce).size());
  for (std::size_t i = 0; i + 1 < choice.considered.size(); ++i)
    CHECK(choice.considered[i].cost.seconds <= choice.considered[i + 1].cost.seconds);
  CHECK(choice.spec == choice.considered[0].spec);
  CHECK(choice.cost.seconds == choice.considered[0].cost.seconds);
  CHECK(choice.reason.starts_with(choice.spec.algorithm));
  CHECK(choice.reason.find(": predicted ") != std::string::npos);
  CHECK(choice.reason.find(", next best " + choice.considered[1].spec.algorithm) != std::string::npos);
  CHECK(choice.reason.ends_with(" ms"));
}

TEST_CASE("if cores are not shared, the fewest rounds decide between plans that the model cannot tell apart") {
  auto const whole = chosen({}, hosts(1, 2), 1 << 20);
  CHECK(whole.spec.algorithm == "mesh");
  CHECK(whole.cost.rounds == 1);
  CHECK(whole.considered[0].cost.rounds == 2);
  CHECK(whole.considered[0].cost.seconds < whole.cost.seconds);
  CHECK(whole.reason.find(" in 1 round; " + whole.considered[0].spec.algorithm + ": ") != std::string::npos);
  CHECK(whole.reason.ends_with(" in 2 rounds is too close to tell"));
  CHECK(chosen({}, hosts(1, 2), 2 << 20).cost.rounds == 2);  // vectors in memory: halves are cheaper to add

  auto const is_cheapest = [](Choice const& choice) { return choice.spec == choice.considered[0].spec; };
  for (std::uint64_t bytes = 4; bytes <= 64 << 20; bytes *= 2) {
    CHECK(is_cheapest(chosen({}, hosts(2, 4), bytes)));
    if (bytes < crowded_bytes / 16) CHECK(is_cheapest(chosen({}, hosts(1, 16), bytes)));  // on eight cores
    CHECK(chosen({}, hosts(1, 4), bytes).cost.seconds <=
          (1 + too_close_to_tell) * chosen({}, hosts(1, 4), bytes).considered[0].cost.seconds);
  }
}

TEST_CASE("if ranks take turns on cores, plans for long vectors keep all ranks about equally busy") {
  auto two_cores = Constants::defaults();
  two_cores.host_cores = 2;
  auto const on_two_cores = [&](std::uint32_t ranks, std::uint64_t bytes) {
    return select({}, hosts(1, ranks), bytes / 4, 4, two_cores).value();
  };
  for (std::uint64_t bytes = 1 << 20; bytes <= 64 << 20; bytes *= 2) {
    for (std::uint32_t const ranks : {3, 4}) CHECK(on_two_cores(ranks, bytes).spec.algorithm == "halving_doubling");
    for (std::uint32_t const ranks : {5, 8, 12}) CHECK(on_two_cores(ranks, bytes).spec.algorithm == "double_tree");
    auto const choice = on_two_cores(8, bytes);
    CHECK(choice.cost.seconds <= (1 + too_crowded_to_tell) * choice.considered[0].cost.seconds);
  }
  auto const is_cheapest = [](Choice const& choice) { return choice.spec == choice.considered[0].spec; };
  CHECK(is_cheapest(on_two_cores(8, 256 << 10)));  // double_tree is outside the tolerance
  CHECK(is_cheapest(on_two_cores(4, 128 << 10)));  // short
  auto const choice = on_two_cores(8, 1 << 20);
  CHECK(choice.reason.find(" with 2097152 bytes from the busiest rank; tree arity 2 root 0: ") != std::string::npos);
  CHECK(choice.reason.ends_with(" with 3145728 bytes from the busiest rank is too close to tell"));
}

TEST_CASE("plans for long vectors need little extra memory") {
  auto two_cores = Constants::defaults();
  two_cores.host_cores = 2;
  constexpr std::uint64_t vector_bytes = 512 << 20;
  auto const extra_of = [](plan::Spec const& spec) {
    return extra_bytes(*algorithms::find(spec.algorithm).value(), spec, vector_bytes);
  };
  for (auto const& constants : {Constants::defaults(), Constants::shared_memory(), two_cores})
    for (std::uint32_t const ranks : {2, 3, 4, 5, 8, 16, 100})
      for (auto const op : all_ops) {
        if (op == Op::barrier) continue;
        CAPTURE(ranks);
        CAPTURE(name(op));
        auto const choice = select({.op = op}, hosts(1, ranks), vector_bytes / 4, 4, constants).value();
        CHECK(extra_of(choice.spec) <= constants.extra_bytes_max);
        for (auto const& other : choice.considered)  // a coordinator learns from the considered plans
          CHECK(extra_of(other.spec) <= constants.extra_bytes_max);
      }
  CHECK(chosen({.op = Op::gather, .algorithm = "binomial"}, hosts(1, 8), vector_bytes).spec.algorithm == "binomial");
}

TEST_CASE("an algorithm asked for by name is chosen, and the reason names the choice of auto") {
  auto const best = chosen({}, hosts(2, 4), 64 << 20);
  auto const forced = chosen({.algorithm = "tree", .arity = 4}, hosts(2, 4), 64 << 20);
  CHECK(forced.spec.algorithm == "tree");
  CHECK(forced.spec.arity == 4);
  CHECK(forced.reason.starts_with("tree arity 4 root 0 was asked for: predicted "));
  CHECK(forced.reason.find("; auto would have chosen " + best.spec.algorithm) != std::string::npos);
  auto const same = chosen({.algorithm = best.spec.algorithm}, hosts(2, 4), 64 << 20);
  CHECK(same.spec == best.spec);
  CHECK(same.reason.find("auto would have chosen it too, next best ") != std::string::npos);
}

TEST_CASE("the reason tells that costs are folded above 64 ranks") {
  CHECK(chosen({}, hosts(1, 65), 4).reason.ends_with("(folded, as there are more than 64 ranks)"));
  CHECK_FALSE(chosen({}, hosts(1, 64), 4).reason.ends_with(")"));
}

TEST_CASE("select() chooses a plan for every operation and every size of group and vector") {
  for (auto const op : all_ops)
    for (std::uint32_t const p : {1u, 2u, 3u, 7u, 64u, 65u, 100u})
      for (std::uint64_t const bytes : {0u, 1u, 1u << 20}) {
        CAPTURE(name(op));
        CAPTURE(p);
        auto const choice = chosen({.op = op}, hosts(1, p), bytes);
        CHECK(choice.spec.op == op);
        CHECK(algorithms::find(choice.spec.algorithm).value()->check(choice.spec).has_value());
      }
}

TEST_CASE("uneven blocks and reproducible sums restrict the choice") {
  for (auto const& candidate : chosen({.op = Op::all_to_all, .uneven = true}, hosts(1, 8), 4).considered)
    CHECK(candidate.spec.algorithm != "bruck");
  for (auto const op : {Op::all_reduce, Op::reduce, Op::reduce_scatter})
    for (auto const& candidate : chosen({.op = op, .reproducible = true}, hosts(2, 4), 1 << 20).considered) {
      auto const* algorithm = algorithms::find(candidate.spec.algorithm).value();
      bool const can_be = algorithm->in_worker_order != nullptr;
      REQUIRE(can_be);
      CHECK(algorithm->in_worker_order(candidate.spec));
    }
}

TEST_CASE("the root is the rank nearest to all others, unless the caller fixes it") {
  std::vector<Locality> const workers{
      {"us", "", "", "a"}, {"eu", "", "", "a"}, {"eu", "", "", "b"}, {"eu", "", "", "b"}};
  CHECK(chosen({.algorithm = "centralized"}, workers, 4).spec.root == 2);
  CHECK(chosen({.algorithm = "centralized", .root = 0}, workers, 4).spec.root == 0);
  CHECK(chosen({.algorithm = "ring", .root = 3}, workers, 4).spec.root == 0);  // a ring has none
}

TEST_CASE("all candidates of a wish in place are in place") {
  for (auto const& candidate : chosen({.in_place = true}, hosts(1, 4), 4).considered) CHECK(candidate.spec.in_place);
}

TEST_CASE("impossible wishes are refused") {
  CHECK(error({}, 0) == PlanErrc::bad_parameter);
  CHECK(error({}, plan::max_ranks + 1) == PlanErrc::bad_parameter);
  CHECK(error({.algorithm = "rign"}, 4) == PlanErrc::unknown_algorithm);
  CHECK(error({.root = 4}, 4) == PlanErrc::rank_out_of_range);
  CHECK(error({.arity = 0}, 4) == PlanErrc::bad_parameter);
  CHECK(error({.algorithm = "torus_2d", .shape = plan::Shape{3, 3}}, 4) == PlanErrc::bad_parameter);
  CHECK(error({.algorithm = "ring", .reproducible = true}, 4) == PlanErrc::unsupported_operation);
  CHECK(error({.op = Op::gather, .algorithm = "ring"}, 4) == PlanErrc::unsupported_operation);
}

TEST_CASE("select() chooses a plan for no elements and for a group of one") {
  CHECK(chosen({}, hosts(1, 1), 1000).cost.seconds >= 0);
  CHECK(chosen({}, hosts(1, 5), 0).cost.bytes_per_rank == 0);
}
