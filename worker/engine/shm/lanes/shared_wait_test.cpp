// How a caller waits over shared memory: how often it checks more than its peers' words, and when it sleeps.
#include <doctest/doctest.h>

#include "worker/engine/shm/lanes/shared_wait.hpp"

using namespace chorus;
using engine::SharedWait;

TEST_CASE("a caller that finds a move each time looks at the clock from time to time as well") {
  memory::RegionHead head;
  SharedWait wait(head, false);
  int looks = 0;
  for (int i = 0; i < 1 << 20; ++i) {
    static_cast<void>(wait.pause(SharedWait::Look::at_one_word));
    looks += wait.moved();
  }
  CHECK(looks == 1024);
}

TEST_CASE("a caller on a core where another thread computes sleeps in each of its waits, and does not yield") {
  memory::RegionHead head;
  SharedWait wait(head, false);
  wait.was_away(std::chrono::milliseconds(3));
  for (int waits = 0; waits < 100; ++waits) {
    for (int looks = 0; looks <= 256 && head.sleepers == 0; ++looks)
      static_cast<void>(wait.pause(SharedWait::Look::at_one_word));
    CHECK(head.sleepers == 1);
    static_cast<void>(wait.moved());
    CHECK(head.sleepers == 0);
  }
}
