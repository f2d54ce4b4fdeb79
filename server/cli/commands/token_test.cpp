// chorus token, and the use of tokens for the coordinator.
#include <doctest/doctest.h>
#include <sys/stat.h>

#include "http/auth/token_file.hpp"
#include "server/cli/testing/test_support.hpp"
#include "tests/support/scratch_directory.hpp"

using namespace chorus;
using namespace chorus::cli;
using chorus::testing::content_of;
using chorus::testing::ScratchDirectory;

namespace {

Run token(ScratchDirectory const& directory, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "token");
  return chorus::cli::chorus(arguments, {"CHORUS_AUTH_TOKENS=" + (directory / "tokens.jsonl")});
}

}  // namespace

TEST_CASE("a token is printed once, and only its hash is kept") {
  ScratchDirectory const directory;
  auto const made = token(directory, {"create", "--role", "submit", "--id", "ci", "--expires", "30d"});
  REQUIRE(made.status == 0);
  auto const secret = made.out.substr(0, made.out.find('\n'));
  CHECK(secret.size() == 7 + 64);
  CHECK(made.out == secret + "\n");
  CHECK(made.err.find(secret) == std::string::npos);
  auto const path = directory / "tokens.jsonl";
  CHECK(content_of(path).find(secret.substr(7)) == std::string::npos);
  auto const entries = http::read_tokens(path).value();
  REQUIRE(entries.size() == 1);
  CHECK(entries[0].id == "ci");
  CHECK(entries[0].hash == http::sha256(secret));
  CHECK(*entries[0].expires > http::system_time() + std::chrono::hours(24 * 29));
  struct stat status {};
  REQUIRE(::stat(path.c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0600);
  CHECK(token(directory, {"create", "--role", "submit"}).out != made.out);
}

TEST_CASE("a token goes into a new file of its own, for its owner alone") {
  ScratchDirectory const directory;
  auto const out = directory / "ci.token";
  auto const made = token(directory, {"create", "--role", "read", "--out", out});
  CHECK(made.status == 0);
  CHECK(made.out.empty());
  CHECK(http::read_tokens(directory / "tokens.jsonl")->at(0).hash == http::sha256(http::read_secret(out).value()));
  struct stat status {};
  REQUIRE(::stat(out.c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0600);
  auto const again = token(directory, {"create", "--role", "read", "--out", out});
  CHECK(again.status == 1);
  CHECK(again.err.find(out) != std::string::npos);
  CHECK(http::read_tokens(directory / "tokens.jsonl")->size() == 1);
}

TEST_CASE("a token that could not be printed is revoked, and every command with lost output has failed") {
  ScratchDirectory const directory;
  auto const to_full_disk = [&](std::string const& arguments) {
    return run_program("/bin/sh", {"-c", "exec " CHORUS_BINARY " " + arguments + " > /dev/full"},
                       {"CHORUS_AUTH_TOKENS=" + (directory / "tokens.jsonl")});
  };
  REQUIRE(token(directory, {"create", "--role", "read", "--id", "seen"}).status == 0);
  for (auto const* arguments : {"token create --role admin", "--json token create --role admin"}) {
    auto const made = to_full_disk(arguments);
    CHECK(made.status == 1);
    CHECK(made.err.find("no token was made") != std::string::npos);
  }
  auto const entries = http::read_tokens(directory / "tokens.jsonl").value();
  REQUIRE(entries.size() == 1);
  CHECK(entries[0].id == "seen");
  for (auto const* arguments : {"token list", "algorithms", "--help", "token --help", "version", "--json version",
                                "verify --max-ranks 2", "simulate --ranks 4 --bytes 1K"}) {
    CAPTURE(arguments);
    auto const lost = to_full_disk(arguments);
    CHECK(lost.status == 1);
    CHECK(lost.err.find("the output could not be written: No space left on device") != std::string::npos);
  }
}

TEST_CASE("tokens are listed and revoked") {
  ScratchDirectory const directory;
  REQUIRE(token(directory, {"create", "--role", "join", "--id", "a"}).status == 0);
  REQUIRE(token(directory, {"create", "--role", "read", "--id", "b"}).status == 0);
  CHECK(token(directory, {"list", "--json"}).out ==
        "{\"id\":\"a\",\"role\":\"join\",\"expires\":\"never\",\"expired\":false}\n"
        "{\"id\":\"b\",\"role\":\"read\",\"expires\":\"never\",\"expired\":false}\n");
  CHECK(token(directory, {"revoke", "a"}).status == 0);
  CHECK(token(directory, {"revoke", "a"}).status == 1);
  CHECK(token(directory, {"list"}).out.find("join") == std::string::npos);
}

TEST_CASE("invalid arguments are refused before anything is written") {
  ScratchDirectory const directory;
  CHECK(token(directory, {"create", "--role", "root"}).status == 2);
  CHECK(token(directory, {"create"}).status == 2);
  CHECK(token(directory, {"create", "--role", "read", "--expires", "soon"}).status == 2);
  CHECK(token(directory, {"create", "--role", "read", "--id", "a b"}).status == 2);
  CHECK(content_of(directory / "tokens.jsonl").empty());
  CHECK(token(directory, {"list"}).status == 1);
}

TEST_CASE("a file without a valid token is reported before any request") {
  ScratchDirectory const directory;
  FakeCoordinator coordinator;
  auto const run =
      chorus::cli::chorus({"workers", "--token-file", directory / "none"}, {"CHORUS_COORDINATOR=" + coordinator.url});
  CHECK(run.status == 1);
  CHECK(run.err.find("--token-file: " + (directory / "none")) != std::string::npos);
  CHECK(coordinator.questions().empty());
}
