// Secrets appear only where they belong. Searches all logs at the highest level, and all pages, problems and files of a
// fleet that was used and misused.
#include <doctest/doctest.h>

#include "tests/support/fleets/secure_fleet.hpp"

using namespace chorus::testing;
namespace json = boost::json;

namespace {

struct Secret {
  std::string what, text;
};

struct Place {
  std::string where, text;
};

// Adds everything that the service answers to an administrator and to a stranger.
void add_pages(std::vector<Place>& places, Service const& service, Badge const& admin) {
  auto nobody = admin;
  nobody.token.clear();
  auto const index = json::parse(call(service.url, "GET", "/v1", admin).body);
  for (auto const& route : index.at("routes").as_array()) {
    auto const path = std::string(route.at("path").as_string());
    if (route.at("method") != "GET" || path.find('{') != std::string::npos || path == "/v1/link") continue;
    for (auto const& badge : {admin, nobody})
      places.push_back(
          {service.id + path, call(service.url, "GET", path, badge, "", {{"Accept", "application/json"}}).body});
  }
}

// A run and a group of the test, requested as the coordinator would, so that the test knows their tokens.
constexpr auto group_token = "00c0ffee00c0ffee", run_token = "00decade00decade";

json::object member(SecureFleet& fleet) {
  auto const worker = json::parse(fleet.get(fleet.coordinator(), "/v1/workers/w0")).as_object();
  return {{"rank", 0}, {"worker", "w0"}, {"incarnation", worker.at("incarnation")}, {"url", worker.at("url")}};
}

std::string assignment(json::object const& only) {
  json::object const group{{"name", "own"}, {"epoch", 1}, {"state", "ready"}, {"members", json::array{only}}};
  return json::serialize(json::object{
      {"group", group}, {"worker", "w0"}, {"incarnation", only.at("incarnation")}, {"token", group_token}});
}

std::string order(json::object const& only) {
  return json::serialize(json::object{{"run", 119},
                                      {"group", "own"},
                                      {"epoch", 1},
                                      {"token", run_token},
                                      {"op", "barrier"},
                                      {"algorithm", "dissemination"},
                                      {"rank", 0},
                                      {"members", json::array{only}}});
}

}  // namespace

TEST_CASE("no token, key or capability is in a log, a page, a problem, an audit or a journal") {
  SecureFleet fleet(2, Logs::kept);
  auto const admin = fleet.badge("admin"), user = fleet.badge("submit"), revoked = fleet.badge("submit");
  auto& coordinator = fleet.coordinator();

  // Normal use ...
  std::string const values(8, '\0');
  for (std::size_t i = 0; i < fleet.size(); ++i)
    fleet.put(fleet.worker(i), "/v1/tensors/t", values,
              {{"Content-Type", "application/octet-stream"}, {"Tensor-Dtype", "f32"}, {"Tensor-Shape", "2"}});
  REQUIRE(fleet.chorus(user, {"groups", "create", "g", "--size", "2"}).status == 0);
  auto const ran = fleet.chorus(user, {"run", "all_reduce", "--group", "g", "--tensor", "t"});
  REQUIRE(ran.status == 0);
  auto const only = member(fleet);
  call(fleet.worker(0).url, "PUT", "/v1/groups/own", admin, assignment(only));
  REQUIRE(fleet.get(fleet.worker(0), "/v1/groups/own").find("\"own\"") != std::string::npos);
  auto const ordered = call(fleet.worker(0).url, "PUT", "/v1/runs/119", admin, order(only));
  CHECK(ordered.status != 0);

  // ... and misuse.
  fleet.revoke(revoked);
  auto wrong = user;
  wrong.token = "chorus_" + std::string(64, 'd');
  std::vector<Place> places{{"the command line", ran.output}, {"the answer to an order", ordered.body}};
  for (auto const& badge : {wrong, revoked, user})
    for (auto const* service : {&coordinator, &fleet.worker(0)})
      for (auto const* path : {"/v1/workers/w0", "/v1/nothing"})
        places.push_back({service->id + " refuses", call(service->url, "DELETE", path, badge, "{}").body});
  call(coordinator.url, "PUT", "/v1/groups/x?access_token=" + user.token, user, "{}");
  for (auto const* query : {"cursor=", "access_token="})
    places.push_back({query, call(coordinator.url, "GET", "/v1/workers?" + (query + user.token), user).body});
  auto const told = fleet.chorus(wrong, {"status"});
  CHECK(told.status != 0);
  places.push_back({"the command line that is refused", told.output});

  for (auto const* name :
       {"coordinator.log", "w0.log", "w1.log", "audit.jsonl", "tokens.jsonl", "journal", "journal-wal"})
    places.push_back({name, content_of(fleet.file(name))});
  add_pages(places, coordinator, admin);
  add_pages(places, fleet.worker(0), admin);
  for (auto const* flight : {"/v1/flight?instructions=true", "/v1/groups/own"})
    places.push_back({flight, fleet.get(fleet.worker(0), flight)});

  auto const key_of_w0 = fleet.authority.path().substr(0, fleet.authority.path().rfind('/')) + "/w0.key";
  // The tokens without their prefix, which is not secret.
  std::vector<Secret> const secrets{{"the services' token", content_of(fleet.file("service.token")).substr(7, 64)},
                                    {"a user's token", user.token.substr(7)},
                                    {"an administrator's token", admin.token.substr(7)},
                                    {"a revoked token", revoked.token.substr(7)},
                                    {"an unknown token", wrong.token.substr(7)},
                                    {"a private key", content_of(key_of_w0).substr(30, 40)},
                                    {"the token of a group", group_token},
                                    {"the token of a run", run_token}};
  std::size_t bytes = 0;
  for (auto const& place : places) {
    bytes += place.text.size();
    for (auto const& secret : secrets) {
      CAPTURE(secret.what);
      CAPTURE(place.where);
      CHECK(place.text.find(secret.text) == std::string::npos);
    }
  }
  MESSAGE(places.size() << " places with " << bytes << " bytes");
  CHECK(content_of(fleet.file("w0.log")).size() > 500);
  CHECK(content_of(fleet.file("audit.jsonl")).find("/v1/groups/x") != std::string::npos);
}
