// Measuring in turns, and the conclusions. No rank runs here.
#include <doctest/doctest.h>

#include <algorithm>

#include "collectives/algorithms/catalogue.hpp"
#include "worker/bench/modes/refine.hpp"
#include "worker/bench/modes/regret.hpp"
#include "worker/bench/timing/contest.hpp"

using namespace chorus;
using namespace chorus::bench;

namespace {

// Contenders with constant times, and a record of their turns.
class Track {
 public:
  explicit Track(std::vector<double> seconds) : seconds_(std::move(seconds)) {}

  std::vector<Sample> contest(Pace const& pace) {
    return bench::contest(
               seconds_.size(), pace,
               [this](std::size_t contender, std::uint64_t iterations) { return run(contender, iterations); })
        .value();
  }
  Result<Sample> run(std::size_t contender, std::uint64_t iterations) {
    REQUIRE(iterations > 0);
    turns.push_back(contender);
    if (contender == breaks) return Error(std::make_error_code(std::errc::broken_pipe), "gone");
    Sample sample;
    sample.seconds.assign(iterations, seconds_[contender]);
    sample.cpu_seconds = 2 * seconds_[contender] * static_cast<double>(iterations);
    sample.correct = contender != is_wrong;
    return sample;
  }

  std::vector<std::size_t> turns;
  std::size_t is_wrong = 99;
  std::size_t breaks = 99;

 private:
  std::vector<double> seconds_;
};

Contender contender(std::string algorithm, double predicted_seconds, plan::Shape shape = {}) {
  return {{.op = Op::all_reduce, .algorithm = std::move(algorithm), .ranks = 4, .shape = std::move(shape)},
          predicted_seconds};
}

Sample took(std::vector<double> microseconds) {
  Sample sample;
  for (auto const us : microseconds) sample.seconds.push_back(us * 1e-6);
  sample.cpu_seconds = 12e-6;
  return sample;
}

Cell cell(std::vector<double> automatic, std::vector<double> ring, std::vector<double> torus) {
  return {{Op::all_reduce, Dtype::f32, 1024, 0},
          4,
          {contender("tree", 9e-6), contender("ring", 11e-6), contender("torus_2d", 12e-6, {2, 2})},
          {took(std::move(automatic)), took(std::move(ring)), took(std::move(torus))}};
}

}  // namespace

TEST_CASE("percentiles are values that were measured") {
  CHECK(percentile({5}, 0.5) == 5);
  CHECK(percentile({3, 1, 2}, 0.5) == 2);
  CHECK(percentile({4, 3, 2, 1}, 0.5) == 2);
  CHECK(percentile({4, 3, 2, 1}, 0.99) == 4);
  CHECK(percentile({4, 3, 2, 1}, 1) == 4);
}

TEST_CASE("contenders take turns until each has had its time") {
  Track track({0.001, 0.004});
  auto const samples = track.contest({.turn_seconds = 0.01, .seconds = 0.1});
  CHECK(samples[0].seconds.size() == 100);
  CHECK(samples[1].seconds.size() == 26);  // two iterations per turn
  CHECK(samples[1].cpu_seconds == doctest::Approx(26 * 2 * 0.004));
  // After the warm-up a contender has two turns in a row only when the order of the first changes.
  auto const measured = std::vector(track.turns.begin() + 4, track.turns.begin() + 4 + 20);
  CHECK(std::count(measured.begin(), measured.end(), 0) == 10);
  CHECK(measured[0] != measured[2]);
}

TEST_CASE("iterations are bounded, and long ones have a few turns all the same") {
  Track track({1e-6, 3});
  auto const samples = track.contest({.seconds = 1, .turns_min = 3, .iterations_max = 50, .warmup = 5});
  CHECK(samples[0].seconds.size() == 50);
  CHECK(samples[1].seconds.size() == 3);
  CHECK(track.turns[0] == 0);
  CHECK(track.turns[1] == 0);
  CHECK(track.turns[2] == 1);  // one iteration is warm-up enough
  CHECK(track.turns[3] == 0);
}

TEST_CASE("where only the best counts, the others stop early") {
  Track track({0.001, 0.0011, 0.0016, 0.1});
  auto const samples = track.contest({.turn_seconds = 0.002, .seconds = 0.2, .only_the_best = true});
  CHECK(samples[0].seconds.size() == 200);
  CHECK(samples[1].seconds.size() > 150);
  CHECK(samples[2].seconds.size() == 8);
  CHECK(samples[3].seconds.size() == 2);
  CHECK(Track({0.001, 0.1}).contest({.seconds = 0.95})[1].seconds.size() == 10);
}

TEST_CASE("a disturbed turn gives no contender up") {
  CHECK_FALSE(is_hopeless(0.0011, 0.001, 100));
  CHECK_FALSE(is_hopeless(0.0019, 0.001, 4));
  CHECK(is_hopeless(0.0021, 0.001, 4));
  std::uint64_t calls = 0;
  auto const disturbed =
      contest(2, {.seconds = 0.2, .turns_min = 7, .only_the_best = true}, [&](std::size_t c, std::uint64_t n) {
        Sample sample;
        sample.seconds.assign(n, 0.001);
        if (c == 1 && ++calls % 3 == 0) sample.seconds.assign(n, 0.1);
        return Result<Sample>(sample);
      });
  CHECK(median(disturbed.value()[1].seconds) == 0.001);
  CHECK(calls > 5);
}

TEST_CASE("wrong results are remembered, those of the warm-up too; errors end the contest") {
  Track track({0.001, 0.001});
  track.is_wrong = 1;
  auto const samples = track.contest({.seconds = 0.01});
  CHECK(samples[0].correct);
  CHECK_FALSE(samples[1].correct);
  track.breaks = 1;
  auto const broken = contest(2, {}, [&](std::size_t c, std::uint64_t n) { return track.run(c, n); });
  CHECK(broken.error().detail == "gone");
}

TEST_CASE("regret compares medians, and is nothing where auto is the best") {
  auto const wrong_choice = cell({12, 1, 12}, {10, 10, 99}, {11, 11, 11});
  CHECK(wrong_choice.best() == 1);
  CHECK(wrong_choice.regret() == doctest::Approx(0.2));
  auto const right_choice = cell({10, 10, 10}, {10, 10, 10}, {11, 11, 11});
  CHECK(right_choice.best() == 0);
  CHECK(right_choice.regret() == 0);

  auto const all = summarize({wrong_choice, right_choice, right_choice});
  CHECK(all.median == 0);
  CHECK(all.max == doctest::Approx(0.2));
  CHECK(all.cells == 3);
  CHECK(summarize({}).cells == 0);
}

TEST_CASE("the choice of auto is refined by runs") {
  std::vector<Contender> contenders{{{.algorithm = "ring", .ranks = 4}, 10e-6},
                                    {{.algorithm = "tree", .ranks = 4}, 11e-6},
                                    {{.algorithm = "mesh", .ranks = 4}, 90e-6}};
  Task const task{.op = Op::all_reduce, .elements = 1024};
  std::uint32_t runs = 0;
  auto const tree_is_best = [&](plan::Spec const& spec) -> Result<double> {
    ++runs;
    return spec.algorithm == "tree" ? 8e-6 : 12e-6;
  };
  REQUIRE(refine(contenders, task, 0, tree_is_best).has_value());
  CHECK(contenders[0].spec.algorithm == "ring");
  REQUIRE(refine(contenders, task, 12, tree_is_best).has_value());
  CHECK(runs == 12);
  CHECK(contenders[0].spec.algorithm == "tree");
  CHECK(contenders[1].spec.algorithm == "ring");
  auto const gone = [](plan::Spec const&) -> Result<double> {
    return Error(std::make_error_code(std::errc::broken_pipe), "gone");
  };
  CHECK(refine(contenders, task, 1, gone).error().detail == "gone");
}

TEST_CASE("a cell and the summary are lines of JSON") {
  auto const it = cell({12, 12, 12}, {10, 10, 10}, {10.5, 10.5});
  CHECK(to_json(it, false) ==
        R"({"op":"all_reduce","ranks":4,"bytes":4096,"auto":"tree arity 2","auto_us":12.00,"best":"ring",)"
        R"("best_us":10.00,"regret":0.2000})");
  CHECK(to_json(it, true).ends_with(
      R"("regret":0.2000,"contenders":[{"algorithm":"ring","p50_us":10.00,"predicted_us":11.00,"cpu_us":4.00,)"
      R"("iterations":3},)"
      R"({"algorithm":"torus_2d shape 2,2","p50_us":10.50,"predicted_us":12.00,"cpu_us":6.00,"iterations":2},)"
      R"({"algorithm":"tree arity 2","p50_us":12.00,"predicted_us":9.00,"cpu_us":4.00,"iterations":3}]})"));
  CHECK(to_json(summarize({it})) == R"({"median_regret":0.2000,"max_regret":0.2000,"cells":1})");
}

TEST_CASE("every algorithm is a contender, and equal plans are one") {
  Options options;
  for (auto const op : all_ops)
    for (std::uint32_t const ranks : {2u, 5u, 8u}) {
      auto const task = make_task(op, Dtype::f32, 4096, ranks, 0);
      auto const contenders = all_contenders(options, task, ranks).value();
      auto const chosen = asked_contenders(options, task, ranks).value();
      CHECK(contenders.front().spec == chosen.front().spec);
      if (ranks < 5) continue;  // most are the same for fewer ranks
      CHECK_MESSAGE(contenders.size() > 1, name(op));
      options.algorithms = {"all"};
      auto const named = asked_contenders(options, task, ranks).value();
      options.algorithms = {"auto"};
      CHECK(named.size() == algorithms::all_for(op).size());
    }
  auto const pair = all_contenders(options, make_task(Op::all_reduce, Dtype::f32, 4096, 2, 0), 2).value();
  CHECK(pair.size() < algorithms::all_for(Op::all_reduce).size());
  // Both exchange the whole vector and add, though they are drawn in different rounds.
  CHECK(std::ranges::count_if(pair, [](Contender const& one) {
          return one.spec.algorithm == "mesh" || one.spec.algorithm == "recursive_doubling";
        }) == 1);
}

TEST_CASE("an algorithm that cannot do the task is refused by name, and left out among all") {
  Options options;
  options.algorithms = {"ring", "dissemination"};
  auto const task = make_task(Op::all_reduce, Dtype::f32, 4096, 4, 0);
  CHECK(asked_contenders(options, task, 4).has_error());
  options.algorithms = {"all"};
  for (auto const& one : asked_contenders(options, task, 4).value()) CHECK(one.spec.algorithm != "dissemination");
}
