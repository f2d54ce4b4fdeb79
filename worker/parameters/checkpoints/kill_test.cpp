// Kills a real process that writes checkpoints to a real file system.
#include <doctest/doctest.h>
#include <signal.h>

#include <charconv>

#include "tests/support/process.hpp"
#include "worker/parameters/checkpoints/testing/content.hpp"
#include "worker/parameters/checkpoints/testing/temporary_directory.hpp"

using namespace chorus;
using namespace chorus::checkpoints;

namespace {

std::uint64_t to_number(std::string const& text) {
  std::uint64_t number = 0;
  auto const [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  REQUIRE((failure == std::errc() && end == text.data() + text.size()));
  return number;
}

}  // namespace

TEST_CASE("every checkpoint that a killed process has reported is committed and complete") {
  checkpoints::testing::TemporaryDirectory const directory;
  auto const files = posix_files();
  for (int round = 0; round < 25; ++round) {
    chorus::testing::Process writer({chorus::testing::binary("checkpoint_writer"), directory.path()});
    std::uint64_t said = 0;
    for (int line = 0; line <= round % 3; ++line) said = to_number(writer.read_line());
    for (int pause = 0; pause < round % 5; ++pause) chorus::testing::pause_briefly();
    writer.signal(SIGKILL);
    writer.wait();
    auto const newest = open_newest(*files, directory.path(), Verify::sha256);
    REQUIRE(newest.has_value());
    auto const number = newest->checkpoint.manifest().number;
    CHECK(number >= said);
    CHECK(newest->refused.empty());
    CHECK(checkpoints::testing::Content(number).is_in(newest->checkpoint, 3));
  }
}
