#include <doctest/doctest.h>

#include <cstdlib>
#include <vector>

#include "tests/support/scratch_directory.hpp"
#include "worker/service/flags.hpp"
#include "worker/service/surroundings.hpp"

using namespace chorus;
using namespace chorus::service;

namespace {

std::optional<Flags> parse(std::vector<char const*> arguments, int& exit_status) {
  arguments.insert(arguments.begin(), "chorus-worker");
  return parse_flags(static_cast<int>(arguments.size()), arguments.data(), exit_status);
}

}  // namespace

TEST_CASE("flags become options") {
  int exit_status = -1;
  auto const flags =
      parse({"--port", "0", "--coordinator", "http://c:7070", "--id", "w1", "--locality", "rack=r1,host=h1",
             "--spin-us", "50", "--link-checksum", "on", "--tensor-limit-bytes", "1000", "--drain-ms", "7"},
            exit_status);
  REQUIRE(flags.has_value());
  CHECK(flags->options.port == 0);
  CHECK(flags->options.coordinator == "http://c:7070");
  CHECK(flags->options.locality.rack == "r1");
  CHECK(flags->options.spin == std::chrono::microseconds(50));
  CHECK(flags->options.link_checksum == links::ChecksumMode::on);
  CHECK(flags->options.tensor_limit_bytes == 1000);
  CHECK(flags->options.drain_timeout == std::chrono::milliseconds(7));
}

TEST_CASE("addresses to listen on and ids are checked by the coordinator's rules") {
  int exit_status = -1;
  for (auto const* host : {"0.0.0.0", "::1", "localhost", "h-1.example"})
    CHECK(parse({"--host", host}, exit_status)->options.host == host);
  CHECK(parse({"--host", "[::1]"}, exit_status)->options.host == "::1");
  for (auto const* host : {"", "http://0.0.0.0", "my host", "[h1]", "h1:7071", "::1::"}) {
    CAPTURE(host);
    exit_status = -1;
    CHECK_FALSE(parse({"--host", host}, exit_status));
    CHECK(exit_status == 2);
  }
  for (auto const* id : {"..", ".", "", "a b"}) CHECK_FALSE(parse({"--id", id}, exit_status));
  CHECK(parse({"--id", "..."}, exit_status)->options.id == "...");
  auto const long_rack = "rack=" + std::string(129, 'r');
  for (auto const* locality : {long_rack.c_str(), "rack=a\nb"})
    CHECK_FALSE(parse({"--locality", locality}, exit_status));
}

TEST_CASE("GPUs are chosen, and bounded") {
  int exit_status = -1;
  auto const flags =
      parse({"--gpus", "1,0", "--gpu-memory-bytes", "1000000", "--gpu-pinned-bytes", "4194304"}, exit_status);
  REQUIRE(flags.has_value());
  CHECK(flags->options.gpus.indices == std::vector<std::uint32_t>{1, 0});
  CHECK(flags->options.gpu_limits.arena_bytes == 1000000);
  CHECK(flags->options.gpu_limits.pinned_bytes == 4194304);
  CHECK(parse({}, exit_status)->options.gpus.is_auto);
  CHECK(parse({}, exit_status)->options.lends_gpu_memory);
  CHECK_FALSE(parse({"--gpu-ipc", "off"}, exit_status)->options.lends_gpu_memory);
  CHECK(parse({}, exit_status)->options.nccl == NcclUse::automatic);
  CHECK(parse({"--gpu-nccl", "on"}, exit_status)->options.nccl == NcclUse::on);
  CHECK(parse({"--gpu-nccl", "off"}, exit_status)->options.nccl == NcclUse::off);
  CHECK_FALSE(parse({"--gpu-nccl", "maybe"}, exit_status));
  for (auto const* choice : {"all", "0,0", "-1", "cuda:0"}) CHECK_FALSE(parse({"--gpus", choice}, exit_status));
  CHECK(exit_status == 2);
}

TEST_CASE("flags may come from the environment") {
  setenv("CHORUS_ID", "from-environment", 1);
  int exit_status = -1;
  auto const flags = parse({}, exit_status);
  unsetenv("CHORUS_ID");
  REQUIRE(flags.has_value());
  CHECK(flags->options.id == "from-environment");
  CHECK(flags->options.port == 7071);
}

TEST_CASE("parts of the locality that a label lacks come from the fallback, and then from the file") {
  chorus::testing::ScratchDirectory const scratch;
  auto const file = scratch / "labels";
  chorus::testing::write_file(file, "region=file,zone=file,rack=file,host=file\n");
  int exit_status = -1;
  auto const flags = parse({"--locality", "region=,zone=,rack=,host=n1", "--locality-fallback", "zone=given",
                            "--locality-file", file.c_str()},
                           exit_status);
  REQUIRE(flags.has_value());
  CHECK(chorus::to_string(flags->options.locality) == "region=file,zone=given,rack=file,host=n1");
}

TEST_CASE("a file without a locality is refused, and named") {
  chorus::testing::ScratchDirectory const scratch;
  auto const file = scratch / "labels";
  chorus::testing::write_file(file, "zone: a\n");
  int exit_status = -1;
  CHECK_FALSE(parse({"--locality-file", file.c_str()}, exit_status).has_value());
  CHECK(exit_status == 2);
  CHECK_FALSE(parse({"--locality-file", "/nowhere"}, exit_status).has_value());
}

TEST_CASE("clients' shared memory is used only if it is allowed") {
  int exit_status = -1;
  CHECK_FALSE(parse({}, exit_status)->options.allows_client_shm);
  CHECK(parse({"--allow-client-shm"}, exit_status)->options.allows_client_shm);
  setenv("CHORUS_ALLOW_CLIENT_SHM", "true", 1);
  CHECK(parse({}, exit_status)->options.allows_client_shm);
  unsetenv("CHORUS_ALLOW_CLIENT_SHM");
}

TEST_CASE("mistyped flags are refused with exit status 2") {
  for (auto const& arguments : std::vector<std::vector<char const*>>{{"--prot", "1"},
                                                                     {"--port", "x"},
                                                                     {"--port", "65536"},
                                                                     {"--port", "-1"},
                                                                     {"--coordinator", "ftp://c"},
                                                                     {"--coordinator", "c:7070"},
                                                                     {"--advertise", "http://node7:7071"},
                                                                     {"--id", "a/b"},
                                                                     {"--locality", "hots=h"},
                                                                     {"--spin-us", "9999999"},
                                                                     {"--log-level", "loud"},
                                                                     {"--tensor-limit-bytes", "99999999999999999999"},
                                                                     {"--gpu-pinned-bytes", "4194303"},
                                                                     {"stray"}}) {
    CAPTURE(std::string(arguments[0]));
    int exit_status = -1;
    CHECK_FALSE(parse(arguments, exit_status).has_value());
    CHECK(exit_status == 2);
  }
}

TEST_CASE("--help and --version are no errors") {
  for (auto const* flag : {"--help", "--version"}) {
    int exit_status = -1;
    CHECK_FALSE(parse({flag}, exit_status).has_value());
    CHECK(exit_status == 0);
  }
}

TEST_CASE("the variable of a Kubernetes Service called chorus is not taken for a port") {
  REQUIRE(::setenv("CHORUS_PORT", "tcp://10.0.0.7:7070", 1) == 0);
  int exit_status = -1;
  auto const flags = parse({}, exit_status);
  ::unsetenv("CHORUS_PORT");
  REQUIRE(flags.has_value());
  CHECK(flags->options.port == 7071);
}
