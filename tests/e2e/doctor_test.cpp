// Every finding of chorus doctor, caused with real services: workers that did not join, run another version, or have a
// wrong address; a slow link; the worker for which others wait.
#include <doctest/doctest.h>
#include <signal.h>

#include <thread>

#include "tests/support/fleets/cluster.hpp"

using namespace chorus::testing;
namespace json = boost::json;

namespace {

struct Said {
  int status = 0;
  std::string text;
  [[nodiscard]] bool has(std::string const& part) const { return text.find(part) != std::string::npos; }
};

Said doctor(Service const& coordinator, std::vector<std::string> const& more = {}) {
  std::vector<std::string> arguments{binary("chorus"), "--coordinator", coordinator.url, "doctor"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  Process process(arguments);
  auto text = process.read_all();
  return {process.wait(), std::move(text)};
}

// Joins and answers like a worker of another release behind a slow link.
class Guest {
 public:
  Guest() {
    auto const well = [](httplib::Request const&, httplib::Response& response) {
      response.set_content("{}", json_type);
    };
    server_.Get(".*", well);
    server_.Post("/v1/probes", [](httplib::Request const&, httplib::Response& response) {
      response.set_content(R"({"url":"http://there","round_trip_s":0.2,"own_round_trip_s":0.0001,"bytes_per_s":1e5})",
                           json_type);
    });
    port_ = server_.bind_to_any_port("127.0.0.1");
    thread_ = std::thread([this] { server_.listen_after_bind(); });
  }
  ~Guest() {
    while (!server_.is_running()) std::this_thread::yield();
    server_.stop();
    thread_.join();
  }
  Guest(Guest const&) = delete;
  Guest& operator=(Guest const&) = delete;

  void join(Service const& coordinator, std::string const& id, std::string const& version) const {
    json::object const place{{"region", ""}, {"zone", ""}, {"rack", ""}, {"host", "h9"}};
    json::object const request{{"id", id},
                               {"incarnation", "0123456789abcdef"},
                               {"url", "http://127.0.0.1:" + std::to_string(port_)},
                               {"locality", place},
                               {"version", version}};
    auto const answer = coordinator.post("/v1/workers", json::serialize(request));
    REQUIRE_MESSAGE(answer.status == 201, answer.body);
  }

 private:
  static constexpr char const* json_type = "application/json";
  httplib::Server server_;
  int port_ = 0;
  std::thread thread_;
};

}  // namespace

TEST_CASE("the doctor reports that no worker has joined") {
  Cluster const cluster(0);
  auto const said = doctor(cluster.coordinator);
  INFO(said.text);
  CHECK(said.status == 1);
  CHECK(said.has("problem: coordinator: no worker has joined"));
}

TEST_CASE("the doctor names a group's missing member and a lost worker") {
  Cluster cluster(4, {}, {"--lease-ms", "3000"});
  REQUIRE(
      cluster.coordinator.put("/v1/groups/g", R"({"workers":["w0","w1","w2","w3"],"on_failure":"shrink"})").status ==
      201);
  CHECK(doctor(cluster.coordinator).status == 0);
  cluster.kill_worker(3);
  CHECK(eventually(
      [&] { return doctor(cluster.coordinator).has("it has 3 of the 4 members asked for; not there: w3"); }));
  auto const said = doctor(cluster.coordinator);
  INFO(said.text);
  CHECK(said.status == 1);
  CHECK(said.has("worker w3: it is lost"));
  CHECK(said.has("worker w3: nobody answers at its address"));
}

TEST_CASE("the doctor names a parameter that is lost") {
  Cluster cluster(2, {}, {"--lease-ms", "3000"});
  cluster.make_group("g", {"w0"});
  REQUIRE(cluster.coordinator.put("/v1/parameters/p", R"({"group":"g","shape":[10]})").status == 201);
  CHECK(doctor(cluster.coordinator).status == 0);
  cluster.kill_worker(0);
  auto& again = cluster.add_worker("w0", "");
  REQUIRE(eventually([&] { return again.is_ready(); }));
  std::string text;
  CHECK(eventually([&] {
    text = doctor(cluster.coordinator).text;
    return text.find("problem: parameter p: parameter p is lost") != std::string::npos;
  }));
  INFO(text);
}

TEST_CASE("the doctor asks the coordinator that leads, also if a standby comes first in the list") {
  Cluster cluster(1);
  httplib::Server standby;
  standby.Get("/readyz", [](auto const&, auto& response) {
    response.status = 503;
    response.set_content(R"({"code":"unavailable","status":503,"detail":"a standby"})", "application/json");
  });
  auto const lead_on = [&](auto const& request, auto& response) {
    response.set_redirect(cluster.coordinator.url + request.target, 307);
    response.set_content(R"({"code":"not_leader","status":307,"detail":"a standby"})", "application/json");
  };
  standby.Get(".*", lead_on);
  standby.Post(".*", lead_on);
  auto const url = "http://127.0.0.1:" + std::to_string(standby.bind_to_any_port("127.0.0.1"));
  std::thread serving([&] { standby.listen_after_bind(); });
  Said said;
  for (auto const& list : {url, url + "," + cluster.coordinator.url}) {
    Process process({binary("chorus"), "--coordinator", list, "doctor"});
    said.text = process.read_all();
    said.status = process.wait();
    CHECK_MESSAGE(said.status == 0, said.text);
  }
  standby.stop();
  serving.join();
}

TEST_CASE("the doctor reports another version, a slow link, and an address at which no service answers") {
  Cluster cluster(4, {"host=h0", "host=h1", "host=h2", "host=h3"}, {"--lease-ms", "60000"});
  auto const version = std::string(cluster.coordinator.get("/v1").json().at("version").as_string());
  {
    Guest const guest;
    guest.join(cluster.coordinator, "guest", "99.9");
    REQUIRE(eventually([&] { return doctor(cluster.coordinator).has("link guest - w0"); }));
    auto const said = doctor(cluster.coordinator);
    INFO(said.text);
    CHECK(said.status == 1);
    CHECK(said.has("version: guest runs 99.9, the coordinator " + version));
    CHECK(said.has("link guest - w0: it carries 0.00 GB/s, links of its level ("));
    CHECK_FALSE(said.has("worker guest: nobody answers"));
  }
  auto const said = doctor(cluster.coordinator, {"--json"});
  INFO(said.text);
  CHECK(
      said.has(R"({"level":"problem","about":"worker guest","what":"nobody answers at its address http://127.0.0.1:)"));
  CHECK(said.has(R"("healthy":false)"));
}

TEST_CASE("the doctor names a stopped, idle worker whose lease is late before the worker is lost") {
  Cluster cluster(2, {}, {"--lease-ms", "6000"});
  cluster.worker(1).process.signal(SIGSTOP);
  std::string text;
  CHECK(eventually(
      [&] {
        text = doctor(cluster.coordinator).text;
        return text.find("worker w1: it is late with its lease: last heard of ") != std::string::npos;
      },
      std::chrono::seconds(20)));
  INFO(text);
  cluster.worker(1).process.signal(SIGCONT);
}

TEST_CASE("the doctor calls a worker with repeatedly more elements to reduce than its peers a straggler") {
  Cluster cluster(3, {"host=h0", "host=h1", "host=h2"});
  cluster.make_group("g");
  std::vector<float> const tensor(1 << 20, 1);
  for (std::size_t i = 0; i < 3; ++i)
    for (int part = 0; part < (i == 1 ? 40 : 1); ++part)
      REQUIRE(cluster.worker(i).put_tensor("grad/" + std::to_string(part), "f32", tensor).status == 201);
  std::string text;
  CHECK(eventually([&] {
    auto const run = cluster.run({{"group", "g"}, {"op", "all_reduce"}, {"tensor", "grad"}});
    REQUIRE(run.as_object().at("state").as_string() == "succeeded");
    text = doctor(cluster.coordinator).text;
    return text.find("worker w1: the others waited for it in ") != std::string::npos;
  }));
  INFO(text);
  CHECK(text.find("worker w0: the others") == std::string::npos);
  CHECK(text.find("worker w2: the others") == std::string::npos);
}
