// Requests other than launches that are carried out once, over real sockets.
#include <doctest/doctest.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>

#include "server/coordinator/testing/fake_worker.hpp"

using namespace chorus;
using namespace chorus::coordinator;
using boost::asio::awaitable;
using http::Method;

namespace {

http::Fields key(std::string value) {
  http::Fields fields;
  fields.set("Idempotency-Key", std::move(value));
  return fields;
}

constexpr auto of_two = R"({"size":2})";

awaitable<void> an_epoch(World* world) {
  co_await world->stand();
  auto const first = co_await world->call(Method::put, "/v1/groups/h", of_two, key("a"));
  CHECK(first.status == 201);
  auto const again = co_await world->call(Method::put, "/v1/groups/h", of_two, key("a"));
  CHECK(again.status == 201);
  CHECK(again.body == first.body);
  CHECK((co_await world->get("/v1/groups/h")).text("/epoch") == "1");
  CHECK((co_await world->call(Method::put, "/v1/groups/h", R"({"size":1})", key("a"))).code() == "idempotency_reused");
  CHECK((co_await world->call(Method::put, "/v1/groups/h", of_two, key(""))).code() == "bad_request");
  // Another key, another group, or no key makes another request.
  CHECK((co_await world->call(Method::put, "/v1/groups/h", of_two, key("b"))).text("/epoch") == "2");
  CHECK((co_await world->call(Method::put, "/v1/groups/i", of_two, key("a"))).status == 201);
  CHECK((co_await world->put("/v1/groups/h", of_two)).text("/epoch") == "3");
}

awaitable<void> a_failure(World* world) {
  co_await world->join(0);
  CHECK((co_await world->call(Method::put, "/v1/groups/h", of_two, key("a"))).code() == "not_enough_workers");
  co_await world->join(1);
  CHECK((co_await world->call(Method::put, "/v1/groups/h", of_two, key("a"))).status == 201);
}

awaitable<void> long_body(World* world) {
  co_await world->stand();
  auto const padded = of_two + std::string(100'000, ' ');
  CHECK((co_await world->call(Method::put, "/v1/groups/h", padded, key("a"))).status == 201);
  CHECK((co_await world->call(Method::put, "/v1/groups/h", padded, key("a"))).status == 201);
  CHECK((co_await world->call(Method::put, "/v1/groups/h", of_two, key("a"))).code() == "idempotency_reused");
}

// A launch is asked for three times, and nobody waits for its end.
awaitable<void> abandoned_waits(World* world) {
  co_await world->stand();
  for (auto& worker : world->workers) worker->tensors["x"];
  world->workers[0]->hold_runs = true;
  std::string const body = R"({"group":"g","op":"all_reduce","tensor":"x"})";
  auto const launch =
      "PUT /v1/collectives/c?wait=10m HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + std::to_string(body.size()) +
      "\r\n\r\n" + body;
  for (int i = 0; i < 3; ++i) {
    boost::asio::ip::tcp::socket client(world->io);
    client.connect({boost::asio::ip::address_v4::loopback(), world->port()});
    boost::asio::write(client, boost::asio::buffer(launch));
    CHECK(co_await world->workers[0]->until_runs(1));
  }
  bool has_ended = false;
  for (auto const until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
       !has_ended && std::chrono::steady_clock::now() < until;) {
    auto const metrics = co_await world->get("/metrics");  // which is a request as well
    has_ended = metrics.body.find("\nchorus_http_requests_in_flight 1\n") != std::string::npos;
  }
  CHECK(has_ended);
  CHECK((co_await world->get("/v1/collectives/c")).text("/state") == "running");
  world->workers[0]->release();
  CHECK(co_await world->until("/v1/collectives/c", "/state", "succeeded"));
}

void tell(awaitable<void> (*story)(World*)) {
  World world(2);
  world.tell(story(&world));
}

}  // namespace

TEST_CASE("a PUT of a group with a key makes one epoch, however often it is sent") { tell(an_epoch); }
TEST_CASE("a failed request with a key is carried out again") { tell(a_failure); }
TEST_CASE("waits for a launch end when their clients have gone, and the launch runs on") { tell(abandoned_waits); }
TEST_CASE("bodies with the same key are compared byte for byte") { tell(long_body); }
