// What people look at, over real sockets: the status, the page, traffic, a demonstration.
#include <doctest/doctest.h>

#include "server/coordinator/testing/fake_worker.hpp"
#include "tests/support/mentions.hpp"
#include "tests/support/scratch_directory.hpp"

using namespace chorus;
using namespace chorus::coordinator;
using boost::asio::awaitable;
using chorus::testing::mentions;

namespace {

constexpr char const* launch = R"({"group":"g","tensor":"x"})";

awaitable<void> verdict_and_page(World* world) {
  CHECK((co_await world->get("/v1/status")).text("/verdict/level") == "amber");
  co_await world->stand();
  auto const status = co_await world->get("/v1/status");
  CHECK(status.text("/verdict/level") == "green");
  CHECK(status.text("/ready") == "2");
  CHECK(status.text("/settings/0/name") == "lease-ms");
  CHECK(status.text("/coordinator/store/kind") == "none");
  CHECK(status.text("/coordinator/since") == status.text("/started_at"));
  auto const page = co_await world->get("/");
  CHECK(mentions(page.body, "2 of 2 workers ready; 1 group"));
  CHECK(mentions(std::string(*page.fields.find("Content-Security-Policy")), "script-src 'self'"));
  co_await world->workers[1]->die();
  CHECK((co_await world->post("/v1/collectives?wait=5s", launch)).status >= 400);
  CHECK(co_await world->until("/v1/status", "/verdict/level", "red"));
  CHECK(mentions((co_await world->get("/")).body, "group g is degraded: it has lost w1"));
}

awaitable<void> files(World* world) {
  auto const script = co_await world->get("/ui/main.js");
  CHECK(script.status == 200);
  CHECK(script.fields.find("Content-Type") == "text/javascript; charset=utf-8");
  http::Fields fields;
  fields.set("If-None-Match", std::string(*script.fields.find("ETag")));
  auto const again = co_await world->call(http::Method::get, "/ui/main.js", "", fields);
  CHECK(again.status == 304);
  CHECK(again.body.empty());
  CHECK((co_await world->get("/ui/none.js")).code() == "not_found");
  CHECK((co_await world->get("/ui/..%2Fpage.cpp")).status == 404);
}

awaitable<void> silent_workers(World* world) {
  co_await world->stand();  // these workers know nothing of links
  auto const traffic = co_await world->get("/v1/links/traffic?group=g");
  CHECK(traffic.status == 200);
  CHECK(mentions(traffic.text("/silent"), "w1"));
  CHECK((co_await world->get("/v1/links/traffic?group=h")).code() == "unknown_group");
  CHECK((co_await world->get("/v1/parameters/none/shards")).code() == "unknown_parameter");
}

awaitable<void> bad_demonstrations(World* world) {
  CHECK((co_await world->post("/v1/demo", "{}")).code() == "not_enough_workers");
  co_await world->stand();
  CHECK((co_await world->post("/v1/demo", R"({"group":"h"})")).code() == "unknown_group");
  CHECK((co_await world->post("/v1/demo", R"({"elements":0})")).code() == "invalid_field");
  CHECK((co_await world->post("/v1/demo", R"({"elements":99999999})")).code() == "invalid_field");
}

awaitable<void> store_of_a_leader(World* world) {
  co_await world->stand();  // joins wait until they are durable
  auto const status = co_await world->get("/v1/status");
  CHECK(status.text("/coordinator/url") == "http://c1:7070");
  CHECK(status.text("/coordinator/store/kind") == "sqlite");
  CHECK(status.text("/coordinator/store/place") == world->journal());
  CHECK(status.json.at_pointer("/coordinator/store/bytes").to_number<std::uint64_t>() > 0);
  CHECK(status.json.at_pointer("/coordinator/store/last_write_s").to_number<double>() > 0);
}

CoordinatorOptions with_settings() {
  auto options = impatient_options();
  auto& setting = options.settings.emplace_back();
  setting.name = "lease-ms";
  return options;
}

}  // namespace

TEST_CASE("the verdict is JSON, and the page begins with it") {
  World world(2, with_settings());
  world.tell(verdict_and_page(&world));
}

TEST_CASE("the status tells where the state is kept, and to which URL standbys send clients") {
  chorus::testing::ScratchDirectory const here;
  auto options = impatient_options();
  options.url = "http://c1:7070";
  World world(2, options, here / "journal");
  world.tell(store_of_a_leader(&world));
}

TEST_CASE("the page's files are asked for again, and sent once") {
  World world(0);
  world.tell(files(&world));
}

TEST_CASE("a worker that cannot tell of its links is listed as silent") {
  World world(2);
  world.tell(silent_workers(&world));
}

TEST_CASE("a demonstration that cannot be is refused, and says why") {
  World world(2);
  world.tell(bad_demonstrations(&world));
}
