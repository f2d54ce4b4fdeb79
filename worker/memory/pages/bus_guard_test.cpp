// Truncation of mapped memory: what its readers see, and what becomes of SIGBUS.
#include "worker/memory/pages/bus_guard.hpp"

#include <doctest/doctest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <vector>

#include "worker/memory/pages/errc.hpp"
#include "worker/memory/testing/regions.hpp"

using namespace chorus;
using namespace chorus::memory;
using namespace chorus::memory::testing;

namespace {

volatile std::sig_atomic_t noted = 0;
void note(int) { noted = noted + 1; }

// Runs one test case of this program in a process of its own, where no signal was handled before.
int run_alone(std::string const& test_case) {
  std::string program = "/proc/self/exe", filter = "--test-case=" + test_case, all = "--no-skip";
  std::array<char*, 4> arguments{program.data(), filter.data(), all.data(), nullptr};
  pid_t child = 0;
  REQUIRE(posix_spawn(&child, program.c_str(), nullptr, nullptr, arguments.data(), environ) == 0);
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  return status;
}

// Reads memory that has been truncated.
std::byte read_what_is_missing() {
  auto const region = make_region(4 * mebi);
  REQUIRE(ftruncate(region->mapping().descriptor(), 4096) == 0);
  auto const value = *static_cast<std::byte const volatile*>(region->mapping().bytes().data() + 2 * mebi);
  CHECK(region->mapping().is_broken());
  return value;
}

}  // namespace

TEST_CASE("reading a large region that was truncated takes little memory for the missing pages") {
  auto const region = make_region(1024 * mebi);
  auto const bytes = region->mapping().bytes();
  REQUIRE(ftruncate(region->mapping().descriptor(), 4096) == 0);
  auto const before = own_bytes("VmData");
  CHECK(bytes[mebi + 5] == std::byte{0});
  CHECK(bytes[1000 * mebi] == std::byte{0});
  CHECK(region->mapping().is_broken());
  CHECK(own_bytes("VmData") < before + 16 * mebi);
  fill(bytes.first(64 * mebi), 1);
  CHECK(bytes[64 * mebi - 1] == std::byte{1});
  CHECK(bytes[64 * mebi] == std::byte{0});
}

TEST_CASE("one region too many is an error") {
  std::vector<BusGuard> guards;
  auto const place = make_region(2 * mebi);
  std::optional<Error> refused;
  while (!refused && guards.size() < 2 * BusGuard::ranges_max) {
    auto guard = BusGuard::over(place->mapping().bytes());
    if (guard.has_value())
      guards.push_back(std::move(*guard));
    else
      refused = guard.error();
  }
  REQUIRE(refused.has_value());
  CHECK(refused->code == MemoryErrc::unavailable);
  CHECK(SharedRegion::create(random_ticket(2 * mebi)).error().code == MemoryErrc::unavailable);
  CHECK(PeerRegion::open(place->ticket()).error().code == MemoryErrc::unavailable);
  guards.pop_back();
  CHECK(PeerRegion::open(place->ticket()).has_value());
}

TEST_CASE("a process that is told to end by a bus error does") {
  auto const region = make_region();
  auto const child = fork();
  if (child == 0) {
    kill(getpid(), SIGBUS);
    _exit(0);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  bool const is_told_nothing = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  CHECK_FALSE(is_told_nothing);  // ended by the signal, or by a sanitizer's handler
}

TEST_CASE("a program's own handler of bus errors gets those that are not of a region, and only those") {
  int const status = run_alone("in a program with a handler of bus errors");
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("in a program with a handler of bus errors" * doctest::skip()) {
  struct sigaction action {};
  action.sa_handler = note;
  sigaction(SIGBUS, &action, nullptr);
  CHECK(read_what_is_missing() == std::byte{0});
  CHECK(noted == 0);
  kill(getpid(), SIGBUS);
  CHECK(noted == 1);
  CHECK(read_what_is_missing() == std::byte{0});
  CHECK(noted == 1);
  kill(getpid(), SIGBUS);
  CHECK(noted == 2);
}
