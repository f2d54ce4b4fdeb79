#include "worker/engine/shm/calls/result_stores.hpp"

#include <doctest/doctest.h>

#include "worker/engine/shm/calls/streaming.hpp"

using namespace chorus::engine;

namespace {

// Returns stream() after `count` steps, given the time per byte of both ways.
bool streams_after(int count, ResultStores& stores, double cached, double streamed) {
  for (int i = 0; i < count; ++i)
    if (stores.tries()) stores.compare(stores.stream() ? streamed : cached, stores.stream() ? cached : streamed);
  return stores.stream();
}

}  // namespace

TEST_CASE("results go the faster way for the placement of the cores, and the other way when that changes") {
  ResultStores stores;
  CHECK_FALSE(streams_after(100, stores, 1, 2));
  CHECK(streams_after(48, stores, 6, 1.1));
  CHECK_FALSE(streams_after(48, stores, 1, 2));
}

TEST_CASE("the first steps find out, and later ones rarely try") {
  ResultStores stores;
  CHECK(streams_after(4, stores, 6, 1));
  int trials = 0;
  for (int i = 0; i < 1600; ++i) trials += static_cast<int>(stores.tries());
  CHECK(trials == 101);  // and one of the first
}

TEST_CASE("one disturbed step, and a way that is about as fast, change nothing") {
  ResultStores stores;
  stores.compare(9, 1);
  stores.compare(1, 1);
  stores.compare(9, 1);
  CHECK_FALSE(stores.stream());
  CHECK_FALSE(streams_after(1000, stores, 1, 0.6));
}

TEST_CASE("results go through the caches again where that is about as good") {
  ResultStores stores;
  CHECK(streams_after(100, stores, 3, 1));
  CHECK(streams_after(100, stores, 1.4, 1));
  CHECK_FALSE(streams_after(100, stores, 1.2, 1));
}

TEST_CASE("the placement of the cores matters for long results that go to several ranks") {
  CHECK(depends_on_cores(32 << 10, 2));
  CHECK_FALSE(depends_on_cores((32 << 10) - 4, 2));
  CHECK_FALSE(depends_on_cores(1 << 20, 1));  // the rank's own memory
  CHECK_FALSE(depends_on_cores(512, 256));    // too short to be timed
}
