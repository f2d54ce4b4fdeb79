// How often a caller that waits over shared memory checks more than its peers' words.
#include <doctest/doctest.h>

#include "worker/engine/shm/shared_wait.hpp"

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
