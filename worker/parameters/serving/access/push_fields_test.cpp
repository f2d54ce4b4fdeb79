#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "worker/parameters/serving/access/push_fields.hpp"

namespace chorus::parameters {

TEST_CASE("a norm goes from worker to worker as it is, also one that is not finite: nobody computes another instead") {
  for (double const norm : {0.0, 0.1, 1e300, std::numeric_limits<double>::infinity(), std::nan("")}) {
    CAPTURE(norm);
    Push push;
    push.client = {"a", 7};
    push.norm = norm;
    http::Fields fields;
    write_push(push, fields);
    auto const read = read_push(fields, PushKind::gradient, Dtype::f32);
    REQUIRE(read.has_value());
    REQUIRE(read->norm.has_value());
    CHECK((*read->norm == norm || (!std::isfinite(norm) && !std::isfinite(*read->norm))));
  }
}

}  // namespace chorus::parameters
