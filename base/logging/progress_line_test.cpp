#include "base/logging/progress_line.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <array>
#include <string>

using chorus::logging::ProgressLine;

namespace {

std::string read_some(int descriptor) {
  std::array<char, 256> text{};
  auto const size = ::read(descriptor, text.data(), text.size());
  return {text.data(), static_cast<std::size_t>(size > 0 ? size : 0)};
}

}  // namespace

TEST_CASE("on a terminal the line is written over, and gone in the end") {
  auto const terminal = ::posix_openpt(O_RDWR | O_NOCTTY);
  REQUIRE(terminal >= 0);
  REQUIRE(::grantpt(terminal) == 0);
  REQUIRE(::unlockpt(terminal) == 0);
  auto const end = ::open(::ptsname(terminal), O_RDWR | O_NOCTTY);
  REQUIRE(end >= 0);
  {
    ProgressLine line(end);
    line.show("1 of 2");
    CHECK(read_some(terminal) == "\r\x1b[K1 of 2");
    line.show("2 of 2");
    CHECK(read_some(terminal) == "\r\x1b[K2 of 2");
  }
  CHECK(read_some(terminal) == "\r\x1b[K");
  ::close(end);
  ::close(terminal);
}

TEST_CASE("without a terminal nothing is written") {
  std::array<int, 2> pipe{};
  REQUIRE(::pipe(pipe.data()) == 0);
  {
    ProgressLine line(pipe[1]);
    line.show("1 of 2");
  }
  ::close(pipe[1]);
  CHECK(read_some(pipe[0]).empty());
  ::close(pipe[0]);
}
