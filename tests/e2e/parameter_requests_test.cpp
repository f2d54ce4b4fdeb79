// Invalid requests about parameters.
#include <doctest/doctest.h>

#include "tests/support/fleets/parameters.hpp"

using namespace chorus::testing;

TEST_CASE("invalid requests about parameters are refused") {
  Cluster cluster(2);
  cluster.make_group("g");
  auto const refused = [&](std::string const& body) { return cluster.coordinator.put("/v1/parameters/w", body); };
  CHECK(refused(R"({"group":"g","shape":[2],"optimizer":{"name":"sdg"}})").code() == "invalid_field");
  CHECK(refused(R"({"group":"g","shape":[2],"optimizer":{"name":"adam","beta1":2}})").body.find("/optimizer/beta1") !=
        std::string::npos);
  CHECK(refused(R"({"group":"g","shape":[4294967296,4294967296]})").code() == "invalid_field");
  CHECK(refused(R"({"group":"g","shape":[2],"staleness":-2})").code() == "invalid_field");
  CHECK(refused(R"({"group":"g","shape":[2],"replicas":3})").code() == "invalid_field");
  CHECK(refused(R"({"group":"none","shape":[2]})").code() == "unknown_group");
  CHECK(refused(R"({"group":"g","shape":[2],"dtype":"i32","optimizer":{"name":"sgd"}})").code() == "invalid_field");
  CHECK(cluster.coordinator.get("/v1/parameters/w").code() == "unknown_parameter");
  CHECK(refused(R"({"group":"g","shape":[2]})").status == 201);
  CHECK(refused(R"({"group":"g","shape":[2]})").status == 200);
  CHECK(refused(R"({"group":"g","shape":[3]})").code() == "already_exists");
  CHECK(cluster.coordinator.erase("/v1/parameters/w").status == 204);
  CHECK(cluster.coordinator.erase("/v1/parameters/w").code() == "unknown_parameter");
  CHECK(refused(R"({"group":"g","shape":[3]})").status == 201);
  CHECK(ParameterClient::values<float>(ParameterClient(cluster.worker(0).url, "c").pull("w").body) ==
        std::vector<float>(3));
}

TEST_CASE("a reader that goes on from former values gets all of the present ones") {
  Cluster cluster(2);
  cluster.make_group("g", {"w0"});
  REQUIRE(cluster.coordinator.put("/v1/parameters/w", R"({"group":"g","shape":[4]})").status == 201);
  ParameterClient owner(cluster.worker(0).url, "a"), other(cluster.worker(1).url, "b");
  for (auto* client : {&owner, &other}) {
    auto const tag = client->pull("w").header("ETag");
    httplib::Headers const rest{{"Range", "bytes=4-7"}, {"If-Range", tag}};
    auto const same = client->pull("w", rest);
    CHECK(same.body.size() == (same.status == 206 ? 4 : 16));
    CHECK(client->push("w", ParameterClient::bytes(std::vector<float>(4, 1))).status == 200);
    auto const anew = client->pull("w", rest);
    CHECK(anew.status == 200);
    CHECK(anew.body == owner.pull("w").body);
    CHECK(client->pull("w", {{"Range", "bytes=4-7"}}).status == 206);
  }
  CHECK(owner.pull("w", {{"Range", "bytes=4-7"}, {"If-Range", owner.pull("w").header("ETag")}}).status == 206);
}

TEST_CASE("a push under a condition is refused, because it would be applied in any case") {
  Cluster cluster(1);
  cluster.make_group("g");
  REQUIRE(cluster.coordinator.put("/v1/parameters/w", R"({"group":"g","shape":[2]})").status == 201);
  ParameterClient client(cluster.worker(0).url, "c");
  auto const ones = ParameterClient::bytes(std::vector<float>(2, 1));
  for (auto const* condition : {"If-Match", "If-None-Match"})
    CHECK(client.push("w", ones, {}, "gradient", {{condition, "\"0.0\""}}).code() == "bad_request");
  CHECK(client.pull("w").header("Parameter-Version") == "0");
}
