// chorus health: the request of container engines.
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>

#include "server/cli/testing/test_support.hpp"

using namespace chorus::cli;

namespace {

// A port whose queue of connections is full: the system answers no further one, as where packets are dropped.
class FullQueue {
 public:
  FullQueue() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const at = reinterpret_cast<sockaddr*>(&address);
    REQUIRE(bind(sockets_[0], at, size) == 0);
    REQUIRE(listen(sockets_[0], 0) == 0);
    REQUIRE(getsockname(sockets_[0], at, &size) == 0);
    for (std::size_t i = 1; i < sockets_.size(); ++i) static_cast<void>(connect(sockets_[i], at, size));
    url = "http://127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  }
  ~FullQueue() {
    for (auto const socket : sockets_) close(socket);
  }
  FullQueue(FullQueue const&) = delete;
  FullQueue& operator=(FullQueue const&) = delete;

  std::string url;

 private:
  static int make() { return socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0); }
  std::array<int, 4> sockets_{make(), make(), make(), make()};
};

}  // namespace

TEST_CASE("a ready service is healthy") {
  FakeCoordinator service;
  service.answer("GET /readyz", 200, "ready\n");
  auto const run = chorus::cli::chorus({"health", service.url});
  CHECK(run.status == 0);
  CHECK(run.out == service.url + ": ready\n");
}

TEST_CASE("the URL may come from the environment") {
  FakeCoordinator service;
  service.answer("GET /readyz", 200, "ready\n");
  CHECK(chorus::cli::chorus({"health"}, {"CHORUS_HEALTH_URL=" + service.url}).status == 0);
}

TEST_CASE("a service that is not ready is not healthy, and says why; it is still alive") {
  FakeCoordinator service;
  service.answer("GET /readyz", 503, R"({"code":"unavailable","detail":"the coordinator is stopping","status":503})");
  service.answer("GET /livez", 200, "ok\n");
  auto const run = chorus::cli::chorus({"health", service.url});
  CHECK(run.status == 1);
  CHECK(run.err == service.url + ": the coordinator is stopping\n");
  CHECK(chorus::cli::chorus({"health", service.url, "--live"}).status == 0);
}

TEST_CASE("a refused connection is not healthy, and the exit code is 1 there too") {
  auto const run = chorus::cli::chorus({"--json", "health", "http://127.0.0.1:9"});
  CHECK(run.status == 1);
  CHECK(run.out ==
        "{\"url\":\"http://127.0.0.1:9\",\"healthy\":false,"
        "\"detail\":\"cannot reach the service at http://127.0.0.1:9: nobody listens there\"}\n");
}

TEST_CASE("the time limit holds for the connection, too") {
  FullQueue const service;
  auto const run = chorus::cli::chorus({"health", service.url, "--timeout", "200ms"});
  CHECK(run.status == 1);
  CHECK(run.err == service.url + ": cannot reach the service at " + service.url + ": no connection within 200 ms\n");
}

TEST_CASE("a malformed URL is a usage error") { CHECK(chorus::cli::chorus({"health", "127.0.0.1"}).status == 2); }

TEST_CASE("a name that does not resolve is reported as such") {
  auto const run = chorus::cli::chorus({"--coordinator", "http://no-such-host.invalid:7070", "status"});
  CHECK(run.status == 3);
  CHECK(run.err.find("the name no-such-host.invalid does not resolve: ") != std::string::npos);
}
