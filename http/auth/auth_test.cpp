// The decisions of a guard, and its audit.
#include <doctest/doctest.h>

#include <filesystem>

#include "http/auth/audit_log.hpp"
#include "http/auth/credentials.hpp"
#include "http/auth/guard.hpp"
#include "http/auth/token_file.hpp"
#include "tests/support/faults/few_descriptors.hpp"
#include "tests/support/faults/full_disk.hpp"
#include "tests/support/scratch_directory.hpp"

using namespace chorus::http;
using chorus::testing::content_of;
using chorus::testing::ScratchDirectory;
using chorus::testing::write_file;
using std::chrono::seconds;

namespace {

WallTime noon() { return parse_time("2026-11-21T12:00:00Z").value(); }

TokenEntry entry(std::string id, Access role, std::string const& token, std::optional<WallTime> expires = {}) {
  return {std::move(id), role, sha256(token), expires};
}

boost::asio::awaitable<Response> nothing(Request const&, Body&) { co_return Response(204); }

// A guard with four tokens, each named after its role, and a route for each role.
class Guarded {
 public:
  explicit Guarded(GuardOptions options = {}) {
    for (auto const role : {Access::read, Access::submit, Access::join, Access::admin})
      add(entry(std::string(name(role)), role, std::string(name(role))));
    add(entry("old", Access::admin, "old", noon()));
    for (auto const access : {Access::open, Access::read, Access::submit, Access::join, Access::admin})
      router_.add(Method::put, "/" + std::string(name(access)), access, nothing);
    for (auto const* health : {"/healthz", "/livez", "/readyz"})
      router_.add(Method::put, health, Access::open, nothing);
    options.tokens = file();
    options.audit_log = directory_ / "audit.jsonl";
    options.clock = noon;
    options.on_refusal = [this](std::string_view reason) { reasons += std::string(reason) + " "; };
    guard_.emplace(std::move(options));
    REQUIRE(guard_->open().has_value());
  }

  void add(TokenEntry const& one) { REQUIRE(append_token(file(), one).has_value()); }
  [[nodiscard]] std::string file() const { return directory_ / "tokens.jsonl"; }
  [[nodiscard]] std::string audit() const { return content_of(directory_ / "audit.jsonl"); }

  // 204 if the request passes.
  Response put(std::string const& path, std::string const& token, Fields fields = {}) {
    return send(Method::put, path, token, std::move(fields));
  }
  Response send(Method method, std::string const& path, std::string const& token, Fields fields = {}) {
    Request request;
    request.method = method;
    request.path = request.target = path;
    request.remote = remote;
    request.fields = std::move(fields);
    if (!token.empty()) request.fields.set("Authorization", "Bearer " + token);
    auto const match = router_.match(request);
    auto response = guard_->stop(request, match).value_or(Response(204));
    guard_->pass(request, match.pattern, response);
    caller = request.caller;
    return response;
  }

  std::string remote = "127.0.0.1:5000";
  std::string reasons;
  Caller caller;

 private:
  ScratchDirectory directory_;
  Router router_;
  std::optional<Guard> guard_;
};

Fields with(std::string name, std::string value) {
  Fields fields;
  fields.set(std::move(name), std::move(value));
  return fields;
}

}  // namespace

TEST_CASE("every role may use exactly the routes of its rights") {
  Guarded guarded;
  std::vector<std::string> const ladder{"open", "read", "submit", "join", "admin"};
  for (std::size_t route = 0; route < ladder.size(); ++route) {
    CAPTURE(ladder[route]);
    CHECK(guarded.put("/" + ladder[route], "").status == (route == 0 ? 204 : 401));
    CHECK(guarded.put("/" + ladder[route], "stranger").status == 401);
    CHECK(guarded.put("/" + ladder[route], "old").status == 401);
    for (std::size_t role = 1; role < ladder.size(); ++role) {
      CAPTURE(ladder[role]);
      CHECK(guarded.put("/" + ladder[route], ladder[role]).status == (role >= route ? 204 : 403));
      if (role >= route) CHECK(guarded.caller.token == ladder[role]);
    }
  }
}

TEST_CASE("a refusal says the reason and the role that is needed") {
  Guarded guarded;
  auto const missing = guarded.put("/submit", "");
  CHECK(missing.fields.find("WWW-Authenticate") == R"(Bearer realm="chorus")");
  CHECK(missing.problem->detail.find("of the role submit") != std::string::npos);
  auto const lesser = guarded.put("/submit", "read");
  CHECK(lesser.problem->detail == "this needs the role submit, and the token read has the role read");
  CHECK(lesser.fields.find("WWW-Authenticate") ==
        R"(Bearer realm="chorus", error="insufficient_scope", scope="submit")");
  CHECK(guarded.put("/read", "old").problem->detail.find("token old has expired at 2026-11-21T12:00:00Z") !=
        std::string::npos);
  CHECK(guarded.put("/read", "", with("Authorization", "Basic eA==")).status == 401);
  CHECK(guarded.put("/read", "", with("Authorization", "Bearer ")).status == 401);
  CHECK(guarded.reasons == "missing role expired unknown unknown ");
}

TEST_CASE("an unknown path is reported to callers that may read, and to no others") {
  Guarded guarded;
  CHECK(guarded.put("/nowhere", "").status == 401);
  CHECK(guarded.put("/nowhere", "read").status == 204);  // passes: the router's 404 follows
}

TEST_CASE("foreign names and origins are refused") {
  Guarded guarded({.hosts = {"chorus.example", "*.svc.local"}, .origins = {"https://board.example"}});
  auto const by = [&](std::string const& host) { return guarded.put("/open", "", with("Host", host)).status; };
  for (auto const* host : {"127.0.0.1:7070", "localhost:7070", "[::1]:7070", "10.1.2.3", "chorus.example:1",
                           "CHORUS.example.", "a.b.svc.local", "me.localhost"}) {
    CAPTURE(host);
    CHECK(by(host) == 204);
  }
  for (auto const* host : {"evil.example", "chorus.example.evil", "svc.local", "xchorus.example", "127.0.0.1.evil",
                           "localhost.evil.example", "1.2.3.4.5"}) {
    CAPTURE(host);
    CHECK(by(host) == 421);
  }
  auto const from = [&](std::string const& origin) {
    auto fields = with("Host", "localhost:7070");
    fields.set("Origin", origin);
    return guarded.put("/open", "", fields);
  };
  CHECK(from("http://localhost:7070").status == 204);
  CHECK(from("https://evil.example").status == 403);
  CHECK(from("http://localhost:7071").status == 403);
  CHECK(from("null").status == 403);
  auto const board = from("https://board.example");
  CHECK(board.status == 204);
  CHECK(board.fields.find("Access-Control-Allow-Origin") == "https://board.example");
  CHECK_FALSE(from("http://localhost:7070").fields.find("Access-Control-Allow-Origin"));
}

TEST_CASE("health is answered for every host name, because load balancers use their own") {
  Guarded guarded({.hosts = {"chorus.example"}});
  for (auto const* health : {"/healthz", "/livez", "/readyz"})
    CHECK(guarded.put(health, "", with("Host", "lb-health-7.internal")).status == 204);
  CHECK(guarded.put("/open", "", with("Host", "lb-health-7.internal")).status == 421);
  auto twice = with("Host", "localhost");
  twice.add("Host", "evil.example");
  CHECK(guarded.put("/livez", "", twice).status == 400);
}

TEST_CASE("the host name in an absolute target counts, whatever Host says") {
  Guarded guarded;
  CHECK(guarded.put("http://evil.example/open", "", with("Host", "localhost")).status == 421);
}

TEST_CASE("requests of an address are limited, except with a token of the service itself") {
  Guarded guarded({.requests_per_second = 5});
  guarded.remote = "10.0.0.7:1";
  int passed = 0;
  for (int i = 0; i < 100; ++i) passed += guarded.put("/submit", "submit").status == 204 ? 1 : 0;
  CHECK(passed >= 10);
  CHECK(passed < 50);
  auto const refused = guarded.put("/submit", "submit");
  CHECK(refused.status == 429);
  CHECK(refused.fields.find("Retry-After") == "1");
  CHECK(guarded.put("/open", "").status == 204);
  Guarded keeping({.requests_per_second = 1, .routine_routes = {"/submit"}});
  keeping.remote = "10.0.0.7:1";
  for (int i = 0; i < 100; ++i) CHECK(keeping.put("/submit", "submit").status == 204);
  CHECK(guarded.put("/join", "join").status == 204);
  guarded.remote = "10.0.0.8:1";
  CHECK(guarded.put("/submit", "submit").status == 204);
}

TEST_CASE("wrong tokens of one address have to wait, and do not lock out the right ones") {
  Guarded guarded;
  guarded.remote = "10.0.0.7:1";
  unsigned last = 0;
  for (int i = 0; i < 40; ++i) last = guarded.put("/read", "guess").status;
  CHECK(last == 429);
  CHECK(guarded.put("/read", "read").status == 204);
  guarded.remote = "127.0.0.1:1";
  for (int i = 0; i < 40; ++i) last = guarded.put("/read", "guess").status;
  CHECK(last == 401);
}

TEST_CASE("buckets fill again, and more addresses than are remembered share one") {
  RateLimiter limiter(2, 3);
  auto const start = RateLimiter::TimePoint() + seconds(100);
  for (int i = 0; i < 3; ++i) CHECK_FALSE(limiter.take("a", start));
  CHECK(limiter.take("a", start) == 1);
  CHECK_FALSE(limiter.take("a", start + seconds(1)));
  CHECK_FALSE(limiter.take("a", start + seconds(1)));
  CHECK(limiter.take("a", start + seconds(1)).has_value());
  for (std::size_t i = 0; i < 2 * RateLimiter::addresses_max; ++i) {
    static_cast<void>(limiter.take("b" + std::to_string(i), start + seconds(1)));
  }
  CHECK(limiter.take("one more", start + seconds(1)).has_value());
  CHECK_FALSE(limiter.take("one more", start + seconds(60)));
}

TEST_CASE("the audit has every change with its caller, and no secret") {
  Guarded guarded;
  static_cast<void>(guarded.put("/submit", "submit"));
  static_cast<void>(guarded.put("/submit", "stranger-token"));
  auto const audit = guarded.audit();
  INFO(audit);
  CHECK(audit.find(R"({"at":"2026-11-21T12:00:00Z","token":"submit","from":"127.0.0.1:5000","method":"PUT",)"
                   R"("path":"/submit","status":204})") != std::string::npos);
  CHECK(audit.find(R"("status":401,"code":"unauthorized"})") != std::string::npos);
  CHECK(audit.find("stranger-token") == std::string::npos);
}

TEST_CASE("the audit names whoever is refused, also those that only read") {
  Guarded guarded;
  CHECK(guarded.send(Method::get, "/read", "read").status == 204);
  CHECK(guarded.audit().empty());
  CHECK(guarded.send(Method::get, "/read", "old").status == 401);
  auto const audit = guarded.audit();
  INFO(audit);
  CHECK(audit.find(R"("token":"old","from":"127.0.0.1:5000","method":"GET","path":"/read","status":401,)") !=
        std::string::npos);
}

TEST_CASE("the audit stays JSON, whatever bytes a path has") {
  ScratchDirectory const directory;
  AuditLog log(directory / "audit.jsonl");
  REQUIRE(log.open().has_value());
  Request request;
  request.path = "/a\xff\"\\\xc3\xa9";
  log.note(request, Response(204), WatchedFile::TimePoint() + seconds(100), noon());
  CHECK(content_of(directory / "audit.jsonl").find("\"path\":\"/a\xef\xbf\xbd\\\"\\\\\xc3\xa9\"") != std::string::npos);
}

TEST_CASE("a line for which the disk has no room leaves no part of it in the audit") {
  ScratchDirectory const directory;
  auto const path = directory / "audit.jsonl";
  AuditLog log(path);
  REQUIRE(log.open().has_value());
  Request request;
  request.path = "/one";
  auto const note = [&] { log.note(request, Response(204), WatchedFile::TimePoint() + seconds(100), noon()); };
  note();
  auto const first = content_of(path);
  {
    chorus::testing::FullDisk const room_for_a_part(first.size() + first.size() / 2);
    note();
    CHECK(content_of(path) == first);
  }
  note();
  CHECK(content_of(path) == first + first);
}

TEST_CASE("an audit that cannot be opened again after a rotation goes on when it can") {
  ScratchDirectory const directory;
  auto const folder = directory / "logs", path = folder + "/audit.jsonl", away = directory / "away";
  std::filesystem::create_directory(folder);
  AuditLog log(path);
  REQUIRE(log.open().has_value());
  auto now = WatchedFile::TimePoint() + seconds(100);
  auto const note = [&] {
    Request request;
    request.path = "/one";
    log.note(request, Response(204), now, noon());
    now += seconds(1);
  };
  note();
  auto const line = content_of(path);
  for (int round = 0; round < 2; ++round) {
    std::filesystem::rename(folder, away + std::to_string(round));
    note();
    note();
    std::filesystem::create_directory(folder);
    note();
    CHECK(content_of(path) == line);
    note();
    CHECK(content_of(path) == line + line);
  }
}

namespace {

using What = TokenBook::Found::What;

// The book of a file with the token "a".
struct OpenBook {
  OpenBook() {
    REQUIRE(append_token(path, entry("a", Access::read, "a")).has_value());
    REQUIRE(book.open(now).has_value());
  }
  What found(std::string const& token) { return book.find(token, now, noon()).what; }

  ScratchDirectory const directory;
  std::string const path = directory / "tokens.jsonl";
  TokenBook book{path};
  WatchedFile::TimePoint now = WatchedFile::TimePoint() + seconds(100);
};

}  // namespace

TEST_CASE_FIXTURE(OpenBook, "a changed file is read again, and a broken one leaves the tokens as they were") {
  CHECK(found("a") == What::good);
  REQUIRE(append_token(path, entry("b", Access::read, "b")).has_value());
  CHECK(found("b") == What::good);  // at once, because the token was unknown
  write_file(path, "broken");
  now += seconds(1);
  CHECK(found("b") == What::good);
  write_file(path, to_line(entry("c", Access::read, "c")));
  CHECK(found("b") == What::good);  // the file is checked once a second
  now += seconds(1);
  CHECK(found("b") == What::unknown);
  CHECK(found("c") == What::good);
}

TEST_CASE_FIXTURE(OpenBook, "tokens that could not be read when they had changed are read when they can be") {
  auto const found = [this](std::string const& token) {
    now += seconds(1);
    return OpenBook::found(token);
  };
  write_file(path, to_line(entry("b", Access::read, "b")));
  {
    chorus::testing::FewDescriptors const none_left;
    CHECK(found("a") == What::good);
  }
  CHECK(found("a") == What::unknown);
  CHECK(found("b") == What::good);
  std::filesystem::remove(path);
  std::filesystem::create_directory(path);
  CHECK(found("b") == What::good);
  std::filesystem::remove(path);
  write_file(path, to_line(entry("c", Access::read, "c")));
  CHECK(found("c") == What::good);
}

TEST_CASE("an own token that could not be read when it had changed is read when it can be") {
  ScratchDirectory const directory;
  auto const path = directory / "token";
  write_file(path, "old\n");
  Credentials const credentials(path, {});
  write_file(path, "new\n");
  {
    chorus::testing::FewDescriptors const none_left;
    CHECK(credentials.authorization_after("").empty());
  }
  CHECK(credentials.authorization_after("") == "Bearer new");
  std::filesystem::remove(path);
  std::filesystem::create_directory(path);
  CHECK(credentials.authorization_after("Bearer new") == "Bearer new");
}

TEST_CASE("a file that cannot be read is complained of once, until it was read") {
  ScratchDirectory const directory;
  WatchedFile file(directory / "token");
  auto now = WatchedFile::TimePoint() + seconds(100);
  auto const has_changed = [&] { return file.has_changed(now += seconds(1)); };
  REQUIRE(has_changed());
  CHECK(file.forget());
  REQUIRE(has_changed());
  CHECK_FALSE(file.forget());
  REQUIRE(has_changed());  // and this time the file is read
  CHECK_FALSE(has_changed());
  write_file(file.path(), "new");
  REQUIRE(has_changed());
  CHECK(file.forget());
}
