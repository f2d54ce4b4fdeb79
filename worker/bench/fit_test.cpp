// From measurements to constants.
#include "worker/bench/fit.hpp"

#include <doctest/doctest.h>

#include "worker/bench/traffic.hpp"

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

TEST_CASE("no constant is negative: what would be is nothing, and the others fit without it") {
  std::vector<Equation> equations;
  for (double const bytes : {100.0, 1000.0, 10000.0}) equations.push_back({{1, bytes}, bytes * 1e-9 - 20e-9});
  auto const x = least_squares(equations);
  CHECK(x[0] == 0);
  CHECK(x[1] == doctest::Approx(1e-9).epsilon(0.2));
  // Nor is there one for what does not occur.
  std::vector<Equation> const single{{{1, 0}, 2}, {{2, 0}, 4}};
  CHECK(least_squares(single) == std::vector<double>{2, 0});
}

TEST_CASE("traffic of all ranks together") {
  auto const task = make_task(Op::all_reduce, Dtype::f32, 4096, 4, 0);
  auto const ring = traffic_of({.op = Op::all_reduce, .algorithm = "ring", .ranks = 4}, task).value();
  CHECK(ring.channels == 4);
  CHECK(ring.messages == 4 * 6);
  CHECK(ring.bytes == 6 * 4096);
  CHECK(ring.reduced_bytes == 3 * 4096);
  auto const single = make_task(Op::all_reduce, Dtype::f32, 4, 4, 0);
  auto const mostly_empty = traffic_of({.op = Op::all_reduce, .algorithm = "ring", .ranks = 4}, single).value();
  CHECK(mostly_empty.channels == 4);
  CHECK(mostly_empty.messages == 6);
  auto const gather = make_task(Op::gather, Dtype::f32, 4096, 4, 1);
  auto const sent = traffic_of({.op = Op::gather, .algorithm = "centralized", .ranks = 4, .root = 1}, gather).value();
  CHECK(sent.channels == 3);
  CHECK(sent.messages == 3);
  CHECK(sent.bytes == 3 * 1024);
  CHECK(sent.reduced_bytes == 0);
  CHECK(traffic_of({.op = Op::gather, .algorithm = "ring", .ranks = 4}, gather).has_error());
}
