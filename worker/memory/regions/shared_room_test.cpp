// Processes that share /dev/shm tell each other of a lack of memory.
#include "worker/memory/regions/shared_room.hpp"

#include <doctest/doctest.h>

#include "tests/support/scratch_directory.hpp"
#include "worker/memory/testing/regions.hpp"

using namespace chorus;
using namespace chorus::memory;
using namespace chorus::memory::testing;

TEST_CASE("tell_of_lack() reaches all regions of the host and leaves other files as they are") {
  auto const mine = make_region(), neighbours = make_region();
  auto const foreign = std::string(region_directory) + "/" + file_name(random_ticket(0));
  std::string const content(4096, 'x');
  chorus::testing::write_file(foreign, content);
  auto const before = neighbours->mapping().head().lacks.load();
  auto const mine_before = mine->mapping().head().lacks.load();
  tell_of_lack();
  CHECK(neighbours->mapping().head().lacks != before);
  CHECK(mine->mapping().head().lacks != mine_before);
  CHECK(chorus::testing::content_of(foreign) == content);
  std::filesystem::remove(foreign);
}

TEST_CASE("shared_room() reports the room in /dev/shm") {
  auto const room = shared_room();
  if (!room) return;  // no limit
  CHECK(room->total_bytes > 0);
  CHECK(room->free_bytes <= room->total_bytes);
}
