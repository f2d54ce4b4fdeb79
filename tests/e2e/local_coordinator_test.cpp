// Programs that start a coordinator of their own.
#include <chorus/chorus.h>
#include <doctest/doctest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>

#include "tests/support/mentions.hpp"
#include "tests/support/process.hpp"
#include "tests/support/scratch_directory.hpp"
#include "worker/api/errc.hpp"
#include "worker/api/local_coordinator.hpp"
#include "worker/api/worker.hpp"

using namespace chorus;
using namespace chorus::testing;

namespace {

auto in_a_minute() { return std::chrono::steady_clock::now() + std::chrono::seconds(60); }

CoordinatorOptions of_this_build() {
  return {.program = binary("chorus-coordinator"), .host = "127.0.0.1", .port = 0, .arguments = {}};
}

void check_error(CoordinatorOptions const& options, std::chrono::steady_clock::time_point deadline,
                 std::string const& part) {
  auto const started = LocalCoordinator::start(options, deadline);
  REQUIRE(started.has_error());
  INFO(started.error().detail);
  CHECK(started.error().code == WorkerErrc::no_coordinator);
  CHECK(mentions(started.error().detail, part));
}

}  // namespace

TEST_CASE("a program starts a coordinator, is a worker there, and ends it") {
  std::string url;
  {
    auto const coordinator = LocalCoordinator::start(of_this_build(), in_a_minute()).value();
    url = coordinator.url();
    WorkerOptions options;
    options.coordinator = url;
    options.id = "alone";
    options.log_level = "off";
    auto worker = Worker::start(options).value();
    auto group = worker.create_group("g", {.workers = {"alone"}, .size = 0, .order = ""}, in_a_minute()).value();
    CHECK(group.barrier().has_value());
  }
  WorkerOptions options;
  options.coordinator = url;
  options.log_level = "off";
  auto worker = Worker::start(options).value();
  auto const late = worker.delete_group("g", std::chrono::steady_clock::now() + std::chrono::milliseconds(500));
  REQUIRE(late.has_error());
  CHECK(late.error().code == WorkerErrc::no_coordinator);
}

TEST_CASE("a coordinator that cannot be started is an error that says why") {
  auto options = of_this_build();
  options.program = "/nowhere/chorus-coordinator";
  check_error(options, in_a_minute(), "/nowhere/chorus-coordinator cannot be started: No such file or directory");
  options = of_this_build();
  options.arguments = {"--no-such-option"};
  check_error(options, in_a_minute(), "has ended before it listened");
  options.program = "/bin/sh";  // which waits for no one
  options.arguments.clear();
  check_error(options, in_a_minute(), "has ended");
  check_error(of_this_build(), std::chrono::steady_clock::now(), "deadline");
}

TEST_CASE("a coordinator ends with a program that is killed, also with one that blocks all signals") {
  for (bool const blocks : {false, true}) {
    std::array<int, 2> told{};
    REQUIRE(pipe(told.data()) == 0);
    auto const program = fork();
    if (program == 0) {
      sigset_t all;
      sigfillset(&all);
      if (blocks) pthread_sigmask(SIG_BLOCK, &all, nullptr);
      auto const coordinator = LocalCoordinator::start(of_this_build(), in_a_minute()).value();
      auto const& url = coordinator.url();
      if (write(told[1], url.data(), url.size()) < 0) _exit(1);
      for (;;) pause();
    }
    close(told[1]);
    std::array<char, 100> url{};
    REQUIRE(read(told[0], url.data(), url.size()) > 0);
    kill(program, SIGKILL);
    waitpid(program, nullptr, 0);
    // The other end of the pipe, which the coordinator has as well, closes with it.
    pollfd end{told[0], POLLIN, 0};
    CHECK(poll(&end, 1, 60'000) == 1);
    CHECK(((end.revents & POLLHUP) != 0));
    close(told[0]);
  }
}

TEST_CASE("a coordinator that does not listen in time ends at once, also where the program ignores SIGTERM") {
  ScratchDirectory const here;
  auto options = of_this_build();
  options.program = here / "sleeps";
  std::ofstream(options.program) << "#!/bin/sh\nexec sleep 60\n";
  std::filesystem::permissions(options.program, std::filesystem::perms::owner_all);
  auto const before = std::signal(SIGTERM, SIG_IGN);
  auto const begun = std::chrono::steady_clock::now();
  check_error(options, begun, "deadline");
  CHECK(std::chrono::steady_clock::now() - begun < std::chrono::seconds(10));  // SIGKILL comes then
  std::signal(SIGTERM, before);
}

TEST_CASE("a C program starts a coordinator") {
  auto const program = binary("chorus-coordinator");
  chorus_coordinator_options_t options{};
  options.size = sizeof(options);
  options.program = program.c_str();
  chorus_coordinator_t* coordinator = nullptr;
  REQUIRE(chorus_start_coordinator(&options, 60'000, &coordinator, nullptr) == CHORUS_OK);
  CHECK(mentions(chorus_coordinator_url(coordinator), "http://127.0.0.1:"));
  chorus_coordinator_free(coordinator);
  auto* const error = chorus_error_create();
  auto const refused = [&](char const* part) {
    CHECK(chorus_start_coordinator(&options, 60'000, &coordinator, error) == CHORUS_BAD_ARGUMENT);
    CHECK(coordinator == nullptr);
    CHECK(mentions(chorus_error_text(error), part));
  };
  options.size = 47;
  refused("size is 47");
  options.size = sizeof(options);
  options.reserved[2] = 1;
  refused("reserved");
  options.reserved[2] = 0;
  options.arguments_length = 1;
  refused("arguments is NULL");
  CHECK(chorus_start_coordinator(&options, -1, &coordinator, error) == CHORUS_BAD_ARGUMENT);
  CHECK(chorus_start_coordinator(&options, 1, nullptr, error) == CHORUS_BAD_ARGUMENT);
  options.arguments_length = 0;
  options.program = "/nowhere";
  CHECK(chorus_start_coordinator(&options, 60'000, &coordinator, error) == CHORUS_NO_COORDINATOR);
  CHECK(std::string(chorus_coordinator_url(nullptr)).empty());
  chorus_coordinator_free(nullptr);
  chorus_error_free(error);
}
