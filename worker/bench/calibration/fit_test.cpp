// From measurements to constants.
#include "worker/bench/timing/fit.hpp"
#include "worker/bench/calibration/measurements.hpp"

#include <doctest/doctest.h>

#include "worker/bench/calibration/traffic.hpp"

using namespace chorus;
using namespace chorus::bench;

TEST_CASE("constants over nine orders of magnitude are found again") {
  std::vector<Equation> equations;
  for (double const messages : {1, 2, 7})
    for (double const bytes : {4.0, 1024.0, 65536.0, 16e6})
      equations.push_back({{1, messages, messages * bytes}, 30e-6 + messages * 12e-6 + messages * bytes * 0.3e-9});
  auto const x = least_squares(equations);
  CHECK(x[0] == doctest::Approx(30e-6));
  CHECK(x[1] == doctest::Approx(12e-6));
  CHECK(x[2] == doctest::Approx(0.3e-9));
  CHECK(median_error(equations, x) < 1e-6);
}

TEST_CASE("noise of a tenth moves no constant by more") {
  std::vector<Equation> equations;
  int n = 0;
  for (double const messages : {1, 2})
    for (double const bytes : {4.0, 1024.0, 65536.0, 1e6, 16e6})
      equations.push_back(
          {{messages, messages * bytes}, (messages * 12e-6 + messages * bytes * 0.3e-9) * (++n % 2 == 0 ? 1.1 : 0.9)});
  auto const x = least_squares(equations);
  CHECK(x[0] == doctest::Approx(12e-6).epsilon(0.1));
  CHECK(x[1] == doctest::Approx(0.3e-9).epsilon(0.1));
  CHECK(median_error(equations, x) < 0.12);
}

TEST_CASE("a disturbed measurement counts little") {
  std::vector<Equation> equations;
  for (double const messages : {1, 2, 3})
    for (double const bytes : {4.0, 1024.0, 65536.0, 1e6, 16e6})
      equations.push_back({{messages, messages * bytes}, messages * 12e-6 + messages * bytes * 0.3e-9});
  equations[3].value *= 4;
  equations[9].value *= 3;
  equations[10].value += 4e-3;
  auto const x = least_squares(equations);
  CHECK(x[0] == doctest::Approx(12e-6).epsilon(0.05));
  CHECK(x[1] == doctest::Approx(0.3e-9).epsilon(0.05));
}

TEST_CASE("no constant is negative: it is zero instead, and the others fit without it") {
  std::vector<Equation> equations;
  for (double const bytes : {100.0, 1000.0, 10000.0}) equations.push_back({{1, bytes}, bytes * 1e-9 - 20e-9});
  auto const x = least_squares(equations);
  CHECK(x[0] == 0);
  CHECK(x[1] == doctest::Approx(1e-9).epsilon(0.2));
  // A constant that does not occur is zero too.
  std::vector<Equation> const single{{{1, 0}, 2}, {{2, 0}, 4}};
  CHECK(least_squares(single) == std::vector<double>{2, 0});
}

TEST_CASE("traffic of all ranks together") {
  auto const task = make_task(Op::all_reduce, Dtype::f32, 4096, 4, 0);
  auto const ring = traffic_of({.op = Op::all_reduce, .algorithm = "ring", .ranks = 4}, task).value();
  CHECK(ring.wakes == 4 * 6);
  CHECK(ring.messages == 4 * 6);
  CHECK(ring.bytes == 6 * 4096);
  CHECK(ring.reduced_bytes == 3 * 4096);
  auto const single = make_task(Op::all_reduce, Dtype::f32, 4, 4, 0);
  auto const mostly_empty = traffic_of({.op = Op::all_reduce, .algorithm = "ring", .ranks = 4}, single).value();
  CHECK(mostly_empty.wakes == 6);
  CHECK(mostly_empty.messages == 6);
  auto const gather = make_task(Op::gather, Dtype::f32, 4096, 4, 1);
  auto const sent = traffic_of({.op = Op::gather, .algorithm = "centralized", .ranks = 4, .root = 1}, gather).value();
  CHECK(sent.wakes == 3);
  CHECK(sent.messages == 3);
  CHECK(sent.bytes == 3 * 1024);
  CHECK(sent.reduced_bytes == 0);
  CHECK(traffic_of({.op = Op::gather, .algorithm = "ring", .ranks = 4}, gather).has_error());
}

TEST_CASE("the times of collectives give the costs of messages and bytes") {
  Found const truth{12e-6, 0.4e-9, 5e-6, 0.25e-9, 30e-6, 0};
  double const gamma = 0.2e-9, wake_s = 7e-6, cores = 2;
  Measurements measurements(gamma, wake_s, cores);
  for (std::uint64_t const bytes : {4, 4096, 1 << 20}) {
    auto const pair = make_task(Op::broadcast, Dtype::f32, bytes, 2, 0);
    auto const one_s = truth.alpha_s + double(bytes) * truth.beta_s_per_byte;
    measurements.add_pair({{.op = Op::broadcast, .algorithm = "binomial", .ranks = 2}, pair, {{20e-6 + one_s}}});
    auto const there_and_back_s = 20e-6 + 2 * one_s + double(bytes) * gamma;
    measurements.add_pair({{.op = Op::all_reduce, .algorithm = "centralized", .ranks = 2}, pair, {{there_and_back_s}}});
    for (std::uint32_t const ranks : {4, 8})
      for (std::string const algorithm : {"recursive_doubling", "halving_doubling", "ring"}) {
        plan::Spec const spec{.op = Op::all_reduce, .algorithm = algorithm, .ranks = ranks};
        auto const task = make_task(Op::all_reduce, Dtype::f32, bytes, ranks, 0);
        auto const traffic = traffic_of(spec, task).value();
        auto const work_s =
            double(traffic.wakes) * wake_s +
            2 * (double(traffic.messages) * truth.message_cpu_s + double(traffic.bytes) * truth.byte_cpu_s) +
            double(traffic.reduced_bytes) * gamma;
        auto const depth =
            algorithm == "ring" ? 2 * (ranks - 1) : (ranks == 4 ? 2 : 3) * (algorithm == "halving_doubling" ? 2 : 1);
        auto const seconds = 10e-6 * ranks + work_s / cores + depth * (truth.alpha_s + wake_s);
        REQUIRE(measurements.add_group({spec, task, {{seconds, seconds}, 2 * (ranks * truth.call_cpu_s + work_s)}})
                    .has_value());
      }
  }
  auto const found = measurements.fit();
  CHECK(found.error < 0.01);
  CHECK(found.alpha_s == doctest::Approx(truth.alpha_s).epsilon(0.01));
  CHECK(found.beta_s_per_byte == doctest::Approx(truth.beta_s_per_byte).epsilon(0.01));
  CHECK(found.message_cpu_s == doctest::Approx(truth.message_cpu_s).epsilon(0.01));
  CHECK(found.byte_cpu_s == doctest::Approx(truth.byte_cpu_s).epsilon(0.01));
  CHECK(found.call_cpu_s == doctest::Approx(truth.call_cpu_s).epsilon(0.01));
}
