#include "collectives/verify/fingerprints.hpp"

#include <doctest/doctest.h>

using chorus::verify::Fingerprints;

TEST_CASE("a fingerprint is complete if it has every rank's contribution once, in any order") {
  Fingerprints values;
  auto sum = values.input(2, 5);
  sum = values.sum(values.input(0, 5), sum);
  CHECK_FALSE(values.complete(sum, 3, 5));
  sum = values.sum(sum, values.input(1, 5));
  CHECK(values.complete(sum, 3, 5));
  CHECK(values.complete(sum, 3));
  CHECK_FALSE(values.complete(sum, 3, 4));
  CHECK_FALSE(values.complete(values.sum(sum, values.input(1, 5)), 3, 5));
}

TEST_CASE("a sum over different chunks is not complete") {
  Fingerprints values;
  auto const mixed = values.sum(values.input(0, 1), values.input(1, 2));
  CHECK_FALSE(values.complete(mixed, 2));
  CHECK(values.is_input(values.input(7, 3), 7, 3));
  CHECK_FALSE(values.is_input(values.input(7, 3), 3, 7));
}

TEST_CASE("finishing a value keeps its contributions, and a sum with a finished value is not finished") {
  Fingerprints values;
  auto const done = values.finish(values.sum(values.input(0, 0), values.input(1, 0)));
  CHECK(values.finished(done));
  CHECK(values.complete(done, 2, 0));
  CHECK_FALSE(values.finished(values.sum(done, values.input(2, 0))));
}
