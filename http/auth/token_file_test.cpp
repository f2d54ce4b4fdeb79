// Tokens and their file.
#include <doctest/doctest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "http/auth/token_file.hpp"
#include "tests/support/scratch_directory.hpp"

using namespace chorus::http;
using chorus::testing::ScratchDirectory;

namespace {

TokenEntry token_entry(std::string id, Access role, std::string const& token, std::optional<WallTime> expires = {}) {
  return {std::move(id), role, sha256(token), expires};
}

void check_malformed(std::string const& text, std::string const& what) {
  auto const entries = parse_tokens(text);
  CAPTURE(text);
  REQUIRE(entries.has_error());
  INFO(entries.error().detail);
  CHECK(entries.error().detail.find(what) != std::string::npos);
}

}  // namespace

TEST_CASE("a token is 256 bits that are in no file") {
  std::array<std::byte, 32> random{};
  random[0] = std::byte{0xab};
  auto const token = make_token(random);
  CHECK(token == "chorus_ab" + std::string(62, '0'));
  auto const midday = parse_time("2026-11-21T12:00:00Z").value();
  auto const line = to_line(token_entry("ci", Access::submit, token, midday));
  CHECK(line.find(token) == std::string::npos);
  CHECK(line.find("ab00") == std::string::npos);
  auto const read = parse_tokens(line).value();
  REQUIRE(read.size() == 1);
  CHECK(read[0].id == "ci");
  CHECK(read[0].role == Access::submit);
  CHECK(read[0].hash == sha256(token));
  CHECK(read[0].expires == midday);
}

TEST_CASE("the hash is the SHA-256 that other programs compute") {
  auto const line = to_line(token_entry("x", Access::read, "foo"));
  CHECK(line.find("2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae") != std::string::npos);
}

TEST_CASE("times are read and written to the second, and other text is not a time") {
  for (auto const* text : {"1970-01-01T00:00:00Z", "2024-02-29T23:59:59Z", "2026-11-21T12:00:00Z"})
    CHECK(to_text(parse_time(text).value()) == text);
  for (auto const* text :
       {"2026-02-29T00:00:00Z", "2026-13-01T00:00:00Z", "2026-11-21T24:00:00Z", "2026-11-21", "", "2026-11-21T12:00:00",
        "2026-11-21t12:00:00Z", "+026-11-21T12:00:00Z", "1969-12-31T23:59:59Z"})
    CHECK_FALSE(parse_time(text).has_value());
}

TEST_CASE("a malformed file of tokens is refused with the line") {
  std::string const good = to_line(token_entry("a", Access::read, "a"));
  CHECK(parse_tokens("# comment\n\n" + good).value().size() == 1);
  check_malformed(good + "nonsense\n", "line 2");
  check_malformed(good + good, "a second token a");
  check_malformed(R"({"id":"a b","role":"read","sha256":""})", "/id");
  check_malformed(R"({"id":"a","role":"root","sha256":""})", "/role");
  check_malformed(R"({"id":"a","role":"open","sha256":""})", "/role");
  check_malformed(R"({"id":"a","role":"read","sha256":"12"})", "/sha256");
  check_malformed(R"({"id":"a","role":"read"})", "sha256");
  auto const hash = std::string(64, '0');
  check_malformed(R"({"id":"a","role":"read","expires":"soon","sha256":")" + hash + "\"}", "/expires");
  check_malformed(R"({"id":"a","role":"read","token":"x","sha256":")" + hash + "\"}", "/token");
}

TEST_CASE("tokens are added and revoked, and an id names one token") {
  ScratchDirectory const directory;
  auto const path = directory / "tokens.jsonl";
  REQUIRE(append_token(path, token_entry("a", Access::read, "a")).has_value());
  REQUIRE(append_token(path, token_entry("b", Access::join, "b")).has_value());
  CHECK(append_token(path, token_entry("a", Access::admin, "c")).error().code == AuthErrc::exists);
  CHECK(read_tokens(path).value().size() == 2);
  CHECK(revoke_token(path, "a").value());
  CHECK_FALSE(revoke_token(path, "a").value());
  CHECK(read_tokens(path).value().at(0).id == "b");
  CHECK(read_tokens(directory / "none").error().detail.find(directory / "none") == 0);
}

TEST_CASE("services that read the file as another user or by another name can read it after a change") {
  ScratchDirectory const directory;
  auto const path = directory / "tokens.jsonl", link = directory / "link";
  REQUIRE(append_token(path, token_entry("a", Access::read, "a")).has_value());
  std::filesystem::create_symlink(path, link);
  REQUIRE(::chmod(path.c_str(), 0640) == 0);
  bool const is_root = ::geteuid() == 0;
  if (is_root) REQUIRE(::chown(path.c_str(), 1, 2) == 0);
  REQUIRE(append_token(link, token_entry("b", Access::join, "b")).has_value());
  CHECK(revoke_token(link, "a").value());
  CHECK(std::filesystem::is_symlink(link));
  CHECK(read_tokens(path).value().at(0).id == "b");
  struct stat status {};
  REQUIRE(::stat(path.c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0640);
  if (is_root) CHECK((status.st_uid == 1 && status.st_gid == 2));
}

TEST_CASE("tokens that are made at the same time are all there") {
  constexpr int programs = 4, tokens_each = 20;
  ScratchDirectory const directory;
  auto const path = directory / "tokens.jsonl";
  std::vector<pid_t> children;
  for (int program = 0; program < programs; ++program) {
    children.push_back(::fork());
    if (children.back() != 0) continue;
    bool good = true;
    for (int i = 0; good && i < tokens_each; ++i) {
      auto const id = std::to_string(program) + "-" + std::to_string(i);
      good = append_token(path, token_entry(id, Access::read, id)).has_value();
    }
    ::_exit(good ? 0 : 1);
  }
  for (auto const child : children) {
    int status = -1;
    ::waitpid(child, &status, 0);
    CHECK(status == 0);
  }
  CHECK(read_tokens(path).value().size() == programs * tokens_each);
}
