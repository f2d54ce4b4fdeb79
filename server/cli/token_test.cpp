// chorus token, and how a token reaches the coordinator.
#include <doctest/doctest.h>
#include <sys/stat.h>

#include "http/auth/token_file.hpp"
#include "server/cli/test_support.hpp"
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

TEST_CASE("what cannot be is refused before anything is written") {
  ScratchDirectory const directory;
  CHECK(token(directory, {"create", "--role", "root"}).status == 2);
  CHECK(token(directory, {"create"}).status == 2);
  CHECK(token(directory, {"create", "--role", "read", "--expires", "soon"}).status == 2);
  CHECK(token(directory, {"create", "--role", "read", "--id", "a b"}).status == 2);
  CHECK(content_of(directory / "tokens.jsonl").empty());
  CHECK(token(directory, {"list"}).status == 1);
}

TEST_CASE("a file of a token that is none is said before anybody is called") {
  ScratchDirectory const directory;
  FakeCoordinator coordinator;
  auto const run =
      chorus::cli::chorus({"workers", "--token-file", directory / "none"}, {"CHORUS_COORDINATOR=" + coordinator.url});
  CHECK(run.status == 1);
  CHECK(run.err.find("--token-file: " + (directory / "none")) != std::string::npos);
  CHECK(coordinator.questions().empty());
}
