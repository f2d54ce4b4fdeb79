// Tokens that are replaced while services talk to each other: a caller with the new token is never refused.
// Certificates that are replaced while no connection begins.
#include <doctest/doctest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <optional>
#include <thread>

#include "http/auth/credentials.hpp"
#include "http/auth/guard.hpp"
#include "http/client/client.hpp"
#include "http/server/security.hpp"
#include "http/testing/live_server.hpp"
#include "tests/support/certificates.hpp"
#include "tests/support/faults/few_descriptors.hpp"
#include "tests/support/scratch_directory.hpp"

using namespace chorus;
using namespace chorus::http;
using namespace chorus::http::testing;
using chorus::testing::ScratchDirectory;
using chorus::testing::write_file;

namespace {

std::string line_of(std::string const& token) {
  TokenEntry entry;
  entry.id = token;
  entry.role = Access::join;
  entry.hash = sha256(token);
  return to_line(entry);
}

// A service with a file of tokens, and a client with a file of its own. All steps happen within one second after both
// have checked their files.
class Talk {
 public:
  Talk() {
    accept("old");
    show("old");
    REQUIRE(guard_.open().has_value());
    REQUIRE(credentials_.open().has_value());
    server_.emplace(ServerLimits(), Door{&guard_});
  }
  ~Talk() { client_.close(); }
  Talk(Talk const&) = delete;
  Talk& operator=(Talk const&) = delete;

  void accept(std::string const& tokens) { write_file(directory_ / "tokens.jsonl", line_of(tokens)); }
  void show(std::string const& token) { write_file(directory_ / "token", token + "\n"); }

  unsigned put() {
    Call call;
    call.method = Method::put;
    call.url = server_->url("/echo");
    call.body = "text";
    auto const answer = run(client_.send(std::move(call), soon()));
    CHECK((answer->status != 200 || answer->body == "text"));
    return answer->status;
  }
  bool upgrade() { return run(client_.upgrade(server_->url("/upgrade"), "test/1", {}, soon())).has_value(); }

 private:
  static TimePoint soon() { return std::chrono::steady_clock::now() + std::chrono::seconds(10); }

  template <class T>
  static boost::asio::awaitable<void> keep(boost::asio::awaitable<Result<T>> task, std::optional<Result<T>>& result) {
    result.emplace(co_await std::move(task));
  }
  template <class T>
  Result<T> run(boost::asio::awaitable<Result<T>> task) {
    std::optional<Result<T>> result;
    boost::asio::co_spawn(io_, keep(std::move(task), result), [](std::exception_ptr failure) {
      if (failure) std::rethrow_exception(failure);
    });
    io_.restart();
    while (!result) io_.run_one();
    return std::move(*result);
  }

  ScratchDirectory directory_;
  Guard guard_{{.tokens = directory_ / "tokens.jsonl"}};
  Credentials credentials_{directory_ / "token", {}};
  std::optional<LiveServer> server_;
  boost::asio::io_context io_{1};
  Client client_{io_.get_executor(), &credentials_};
};

}  // namespace

TEST_CASE("a caller with the new token is let in at once, even if one side has not yet checked its file") {
  Talk talk;
  REQUIRE(talk.put() == 200);
  talk.show("new");
  talk.accept("new");
  CHECK(talk.put() == 200);
  CHECK(talk.put() == 200);
  talk.show("newer");
  talk.accept("newer");
  CHECK(talk.upgrade());
}

TEST_CASE("a caller with the old token is refused, and let in when the new one has arrived") {
  Talk talk;
  REQUIRE(talk.put() == 200);
  talk.accept("new");
  while (talk.put() == 200) continue;  // the service checks its file once a second
  CHECK(talk.put() == 401);
  CHECK_FALSE(talk.upgrade());
  talk.show("new");
  CHECK(talk.put() == 200);
  CHECK(talk.upgrade());
}

TEST_CASE("the time at which a certificate expires is that of the file, also while no connection begins") {
  chorus::testing::Authority authority;
  auto const own = authority.issue("service", {"127.0.0.1"});
  SecurityOptions options;
  options.tls_certificate = own.certificate;
  options.tls_key = own.key;
  Security security(options, {}, [](std::string_view) {});
  REQUIRE(security.open().has_value());
  auto const first = security.certificate_ends_seconds();
  authority.issue("service", {"127.0.0.1"}, std::chrono::hours(100));
  auto const deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (security.certificate_ends_seconds() == first && std::chrono::steady_clock::now() < deadline)
    std::this_thread::yield();  // the files are looked at once a second
  CHECK(*security.certificate_ends_seconds() > *first + 90 * 3600);
}

TEST_CASE("a new certificate that could not be read is read when it can be") {
  using Clock = std::chrono::steady_clock;
  chorus::testing::Authority authority;
  auto const own = authority.issue("service", {"127.0.0.1"});
  TlsContext context(TlsContext::Side::server, {own.certificate, own.key, "", false});
  REQUIRE(context.open().has_value());
  auto const first = context.current();
  authority.issue("service", {"127.0.0.1"});
  {
    chorus::testing::FewDescriptors const none_left;
    auto const looked_at = Clock::now() + 2 * WatchedFile::period;
    while (Clock::now() < looked_at) static_cast<void>(context.current());
    CHECK(context.current() == first);
  }
  auto const deadline = Clock::now() + std::chrono::seconds(20);
  while (context.current() == first && Clock::now() < deadline) std::this_thread::yield();
  CHECK(context.current() != first);
}
