#include "worker/engine/courtesy.hpp"

#include <doctest/doctest.h>

using chorus::engine::Courtesy;
using namespace std::chrono_literals;

TEST_CASE("who comes back from a yield at once is alone") {
  Courtesy courtesy;
  courtesy.took(300ns);
  CHECK(courtesy.is_alone());
  courtesy.took(500ns);
  CHECK(courtesy.is_alone());
}

TEST_CASE("who comes back late has company, by the clock and by what is usual here") {
  Courtesy courtesy;
  courtesy.took(5us);
  CHECK_FALSE(courtesy.is_alone());
  courtesy.took(300ns);
  CHECK(courtesy.is_alone());
  courtesy.took(700ns);
  CHECK_FALSE(courtesy.is_alone());
}

TEST_CASE("who is alone looks a few times before the next yield") {
  Courtesy courtesy;
  courtesy.took(300ns);
  auto const now = Courtesy::TimePoint::max();  // a yield would be seen to have come back long before it began
  for (unsigned look = 0; look < Courtesy::looks_alone; ++look) {
    CHECK(courtesy.is_alone());
    courtesy.give_way(now);
  }
  CHECK_FALSE(courtesy.is_alone());
}
