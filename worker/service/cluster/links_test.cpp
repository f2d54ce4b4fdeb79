// GET /v1/links: kinds of links to peers, and reasons for links without shared memory.
#include <doctest/doctest.h>

#include "worker/service/testing/live_group.hpp"

using namespace chorus;
using namespace chorus::service::testing;

namespace {

boost::json::value link_with(LiveWorker const& worker, std::string const& peer) {
  auto const links = worker.get("/v1/links").json();
  for (auto const& item : links.at("items").as_array())
    if (item.at("worker") == boost::json::string_view(peer)) return item;
  return {};
}

}  // namespace

TEST_CASE("links through shared memory say so and give no reason against it") {
  LiveGroup group(2);
  group.assign(1);
  CHECK(group.at(0).get("/v1/links").json().at("items").as_array().empty());
  group.put_everywhere("x");
  for (auto const& answer : group.all_reduce(R"({"tensor":"x"})")) REQUIRE(answer.status == 200);
  auto const link = link_with(group.at(0), "w1");
  INFO(boost::json::serialize(link));
  CHECK(link.at("link") == "shm");
  CHECK(link.at("connections").to_number<int>() >= 1);
  CHECK(link.at("sent_bytes").to_number<int>() == 4000);
  CHECK(link.at("received_bytes").to_number<int>() == 4000);
  CHECK_FALSE(link.as_object().contains("why_not_shm"));
}

TEST_CASE("a worker whose peer shares no memory says why it uses tcp") {
  LiveGroup group(2, [](service::WorkerOptions& options) { options.shares_memory = options.id != "w1"; });
  group.assign(1);
  group.put_everywhere("x");
  for (auto const& answer : group.all_reduce(R"({"tensor":"x"})")) REQUIRE(answer.status == 200);
  auto const link = link_with(group.at(0), "w1");
  INFO(boost::json::serialize(link));
  CHECK(link.at("link") == "tcp");
  CHECK(link.at("why_not_shm").as_string().find("does not share memory") != std::string::npos);
  auto const logged = group.at(0).logged();
  std::string const line = "the link with w1 goes over tcp: the peer does not share memory";
  CHECK_MESSAGE(logged.find(line) != std::string::npos, logged);
  for (auto const& answer : group.all_reduce(R"({"tensor":"x"})")) REQUIRE(answer.status == 200);
  CHECK_MESSAGE(group.at(0).logged().find(line, logged.find(line) + 1) == std::string::npos, "once is enough");
}
