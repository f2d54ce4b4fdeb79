// Services that listen on "::", with IPv6 alone and with both protocols.
#include <doctest/doctest.h>

#include "tests/support/faults/surroundings.hpp"
#include "tests/support/fleets/cluster.hpp"

using namespace chorus::testing;

namespace {

// Status of a service at one of its addresses.
int ready_at(std::string const& address, Service const& service) {
  httplib::Client client("http://" + address + ":" + std::to_string(service.port()));
  auto const answer = client.Get("/readyz");
  return answer ? answer->status : 0;
}

std::string urls(std::vector<std::string> const& addresses, Service const& service) {
  return "http://" + addresses.back() + ":" + std::to_string(service.port());
}

void sums_are_made(std::vector<std::string> const& addresses) {
  auto const start = [&](std::string const& program, std::vector<std::string> more) {
    std::vector<std::string> arguments{binary(program),      "--host",      "::",   "--port", "0",
                                       "--insecure-no-auth", "--log-level", "error"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return Service(program, std::move(arguments));
  };
  Service const coordinator = start("chorus-coordinator", {});
  auto const url = urls(addresses, coordinator);
  Service const w0 = start("chorus-worker", {"--coordinator", url, "--id", "w0", "--advertise", addresses.front()});
  Service const w1 =
      start("chorus-worker", {"--coordinator", url, "--id", "w1", "--advertise", addresses.back(), "--shm", "off"});
  for (auto const* worker : {&w0, &w1})
    for (auto const& address : addresses) {
      CAPTURE(address);
      CHECK(eventually([&] { return ready_at(address, *worker) == 200; }));
    }
  httplib::Client client(url);
  client.set_read_timeout(60);
  auto const group = client.Put("/v1/groups/g", R"({"workers":["w0","w1"]})", "application/json");
  REQUIRE(group);
  REQUIRE(group->status == 201);
  for (auto const* worker : {&w0, &w1}) {
    httplib::Client at("http://" + addresses.front() + ":" + std::to_string(worker->port()));
    std::vector<float> const ones(1000, 1);
    std::string const body(reinterpret_cast<char const*>(ones.data()), ones.size() * sizeof(float));
    auto const put =
        at.Put("/v1/tensors/x", {{"Tensor-Dtype", "f32"}, {"Tensor-Shape", "1000"}}, body, "application/octet-stream");
    REQUIRE(put);
    REQUIRE(put->status == 201);
  }
  auto const sum = client.Post("/v1/collectives?wait=30s", R"({"group":"g","tensor":"x"})", "application/json");
  REQUIRE(sum);
  CHECK(boost::json::parse(sum->body).at("state") == "succeeded");
}

}  // namespace

TEST_CASE("with IPv4 and IPv6, services that listen on :: are reached by both") {
  if (!take_own_network(true)) {
    MESSAGE("skipped: this machine lets the test have no network of its own");
    return;
  }
  sums_are_made({"[2001:2::1]", "10.0.0.1"});
}

TEST_CASE("with IPv6 alone, coordinator, workers, probes and collectives work") {
  if (!take_own_network(false)) {
    MESSAGE("skipped: this machine lets the test have no network of its own");
    return;
  }
  sums_are_made({"[2001:2::1]"});
}
