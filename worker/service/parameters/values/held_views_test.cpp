#include <doctest/doctest.h>

#include "worker/service/parameters/values/held_views.hpp"

using namespace chorus;
using namespace chorus::service;
using std::chrono_literals::operator""s;

namespace {

http::TimePoint const start{std::chrono::hours(1)};
HeldViews::Key const key{"w", 0, "1.7"};

}  // namespace

TEST_CASE("a reader that releases twice, because an answer was lost, leaves another reader's values alone") {
  HeldViews held;
  held.hold(key, "a", {}, start);
  held.hold(key, "b", {}, start);
  held.release(key, "a");
  held.release(key, "a");
  CHECK(held.find(key, start).has_value());
  held.release(key, "b");
  CHECK_FALSE(held.find(key, start).has_value());
}

TEST_CASE("a reader that holds twice, because an answer was lost, releases once") {
  HeldViews held;
  held.hold(key, "a", {}, start);
  held.hold(key, "a", {}, start);
  held.release(key, "a");
  CHECK_FALSE(held.find(key, start).has_value());
}

TEST_CASE("the memory of a view whose reader does not come back is given back, though no other reader comes") {
  auto const values = std::make_shared<tensors::Block>(nullptr, 0);
  HeldViews held;
  held.hold(key, "a", {values}, start);
  held.let_go(start + 30s);
  CHECK(values.use_count() == 2);
  held.let_go(start + 31s);
  CHECK(values.use_count() == 1);
}

TEST_CASE("views expire after half a minute, and reading keeps them") {
  HeldViews held;
  held.hold(key, "a", {}, start);
  CHECK(held.find(key, start + 29s).has_value());
  CHECK(held.find(key, start + 58s).has_value());
  CHECK_FALSE(held.find(key, start + 89s).has_value());
}
