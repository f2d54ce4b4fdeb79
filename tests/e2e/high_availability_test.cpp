// Several coordinators on a real etcd: one leads, and when it is killed, stopped or told to leave, another one goes on
// with everything that was promised.
#include <doctest/doctest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <iostream>
#include <thread>

#include "tests/e2e/coordinator_fleet.hpp"
#include "tests/support/certificates.hpp"
#include "tests/support/mentions.hpp"

using namespace chorus::testing;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

namespace {

using Fleet = CoordinatorFleet;

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

std::string first_error(std::vector<std::string> arguments, int expected) {
  arguments.insert(arguments.begin(), {"/bin/sh", "-c", "exec \"$@\" 2>&1", "sh", binary("chorus-coordinator")});
  Process process(arguments);
  auto text = process.read_all();
  CHECK(process.wait() == expected);
  return text;
}

}  // namespace

TEST_CASE("of three coordinators one leads, and the others redirect to it") {
  if (is_etcd_missing()) return;
  Fleet fleet;
  CHECK(fleet.leaders() == 1);
  auto* const leader = fleet.leader();
  for (std::size_t i = 0; i < fleet.size(); ++i) {
    auto& one = fleet.at(i);
    if (&one == leader) continue;
    CHECK(one.get("/livez").status == 200);
    CHECK(eventually([&] { return mentions(one.get("/readyz").body, leader->url + " leads"); }));
    CHECK(one.get("/readyz").status == 503);
    auto const elsewhere = one.get("/v1/groups/g?a=b");
    CHECK(elsewhere.status == 307);
    CHECK(elsewhere.code() == "not_leader");
    CHECK(elsewhere.header("Location") == leader->url + "/v1/groups/g?a=b");
    CHECK(one.post("/v1/collectives", "{}").status == 307);
    // The command takes a list, skips an address at which no process listens, and follows a standby's redirect.
    HeldPort const nobody;
    Process command({binary("chorus"), "--coordinator", "http://127.0.0.1:" + nobody.text() + "," + one.url, "run",
                     "all_reduce", "--group", "g", "--tensor", "x"});
    auto const said = command.read_all();
    CHECK_MESSAGE(command.wait() == 0, said);
  }
  CHECK(fleet.launches(leader));
  CHECK(fleet.workers[0]->get_tensor<std::uint64_t>("x") == std::vector<std::uint64_t>(1000, 12));
}

TEST_CASE("metrics tell which coordinator leads, and a standby shows only its own metrics") {
  if (is_etcd_missing()) return;
  Fleet fleet;
  auto* const leader = fleet.leader();
  auto const term = leader->metric("chorus_leadership_term");
  CHECK(term > 0);
  CHECK(leader->metric("chorus_coordinator_leading") == 1);
  CHECK(leader->metric("chorus_journal_write_duration_seconds_count") > 0);
  for (std::size_t i = 0; i < fleet.size(); ++i) {
    auto& one = fleet.at(i);
    CHECK(eventually([&] { return one.metric("chorus_leadership_term") == term; }));
    CHECK(one.metric("chorus_etcd_requests_total") > 0);
    if (&one == leader) continue;
    CHECK(one.metric("chorus_coordinator_leading") == 0);
    CHECK(one.metric("chorus_ready") == 0);
    CHECK(one.metric("chorus_members") == -1);
  }
  leader->process.signal(SIGTERM);
  Service* next = nullptr;
  REQUIRE(eventually([&] { return (next = fleet.leader(leader)) != nullptr; }, 20s));
  CHECK(next->metric("chorus_leadership_term") > term);
}

TEST_CASE("a killed leader is followed within seconds by one that knows all groups and collectives") {
  if (is_etcd_missing()) return;
  Fleet fleet;
  std::vector<double> seconds;
  std::uint64_t value = 0;
  auto const kills = number_from_environment("CHORUS_KILLS", 4);
  for (std::uint64_t kill = 0; kill < kills; ++kill) {
    auto* const leader = fleet.leader();
    REQUIRE(leader != nullptr);
    auto const id = "c" + std::to_string(kill);
    REQUIRE(leader->put("/v1/collectives/" + id + "?wait=20s", R"({"group":"g","tensor":"x"})").status == 200);
    auto const killed = fleet.number_of(leader);
    auto const events = leader->get("/v1/status").json();
    auto const begun = Clock::now();
    leader->process.signal(SIGKILL);
    Service* next = nullptr;
    REQUIRE(eventually([&] { return (next = fleet.leader(leader)) != nullptr; }, 20s));
    REQUIRE(eventually([&] { return fleet.launches(next); }, 20s));
    seconds.push_back(std::chrono::duration<double>(Clock::now() - begun).count());
    value = kill == 0 ? 6 : value * 4;  // two more launches
    // Earlier runs are known, and were not run again.
    CHECK(next->get("/v1/collectives/" + id).json().at("state") == "succeeded");
    CHECK(fleet.workers[1]->get_tensor<std::uint64_t>("x") == std::vector<std::uint64_t>(1000, value));
    CHECK(next->get("/v1/groups/g").json().at("epoch") == 1);
    fleet.end(killed);
    fleet.start(killed);
  }
  std::cout << "from the kill to the next launch: median " << median(seconds) << " s, longest "
            << *std::ranges::max_element(seconds) << " s of " << kills << std::endl;
}

TEST_CASE("a leader that gets SIGTERM hands over at once") {
  if (is_etcd_missing()) return;
  Fleet fleet;
  auto* const leader = fleet.leader();
  auto const begun = Clock::now();
  leader->process.signal(SIGTERM);
  Service* next = nullptr;
  REQUIRE(eventually([&] { return (next = fleet.leader(leader)) != nullptr; }, 20s));
  std::cout << "from SIGTERM to the next leader: " << std::chrono::duration<double>(Clock::now() - begun).count()
            << " s" << std::endl;
  CHECK(leader->process.wait() == 0);
  CHECK(fleet.launches(next));
}

TEST_CASE("a coordinator that is started again before its lease has ended redirects nobody to itself") {
  if (is_etcd_missing()) return;
  Fleet fleet({.coordinators = 1, .flags = {"--etcd-lease-s", "4"}});
  fleet.at(0).process.signal(SIGKILL);
  fleet.end(0);
  fleet.start(0);
  // The key of the killed process is in etcd until its lease ends.
  REQUIRE(eventually([&] { return fleet.at(0).metric("chorus_leadership_term") > 0; }));
  auto const refused = fleet.at(0).get("/v1/groups/g");
  CHECK(refused.status == 503);
  CHECK(refused.code() == "unavailable");
  CHECK(refused.header("Retry-After") == "1");
  CHECK_MESSAGE(mentions(fleet.ready_text(0), "no coordinator leads"), fleet.ready_text(0));
  REQUIRE(eventually([&] { return fleet.leader() != nullptr; }, 20s));
  CHECK(fleet.at(0).get("/v1/groups/g").status == 200);
}

TEST_CASE("a leader that was stopped for longer than its lease writes nothing, and ends") {
  if (is_etcd_missing()) return;
  Fleet fleet;
  auto* const leader = fleet.leader();
  leader->process.signal(SIGSTOP);
  Service* next = nullptr;
  REQUIRE(eventually(
      [&] {
        for (std::size_t i = 0; i < fleet.size(); ++i)
          if (&fleet.at(i) != leader && fleet.is_ready(i)) next = &fleet.at(i);
        return next != nullptr;
      },
      20s));
  CHECK(fleet.launches(next));
  leader->process.signal(SIGCONT);
  CHECK(leader->process.wait() == 1);
  CHECK(next->get("/readyz").status == 200);
  CHECK(fleet.launches(next));
}

TEST_CASE("a leader that is cut off from etcd alone ends before another coordinator leads") {
  if (is_etcd_missing()) return;
  for (auto const harm : {Harm::silent, Harm::cut}) {
    INFO(to_string(harm));
    Fleet fleet;
    auto* const leader = fleet.leader();
    fleet.harm_way_to_etcd(fleet.number_of(leader), harm);
    CHECK(leader->process.wait() == 1);
    Service* next = nullptr;
    REQUIRE(eventually([&] { return (next = fleet.leader(leader)) != nullptr; }, 20s));
    CHECK(fleet.launches(next));
    CHECK(next->get("/v1/groups/g").json().at("epoch") == 1);
  }
}

TEST_CASE("members' calls go on while no coordinator leads, and coordinators wait for a stopped etcd") {
  if (is_etcd_missing()) return;
  Fleet fleet({.etcds = 3, .coordinators = 2});
  fleet.etcd.kill(0);
  Service* leader = nullptr;
  REQUIRE(eventually([&] { return fleet.launches(leader = fleet.leader()); }, 30s));
  fleet.etcd.kill(1);  // no quorum
  REQUIRE(eventually([&] { return leader->process.has_ended(); }, 30s));
  CHECK(fleet.leaders() == 0);
  // No running coordinator begins anything, and each says why.
  for (std::size_t i = 0; i < fleet.size(); ++i) {
    if (fleet.has_ended(i)) continue;
    Answer refused;
    auto const is_refused = [&] {
      refused = fleet.at(i).post("/v1/collectives", R"({"group":"g","tensor":"x"})");
      return refused.status == 503;
    };
    CHECK_MESSAGE(eventually(is_refused, 10s), refused.body);
    CHECK_MESSAGE(refused.code() == "unavailable", refused.body);
    CHECK_MESSAGE(mentions(refused.body, "no coordinator leads at present: http"), refused.body);
  }
  std::vector<std::thread> calls;
  for (auto const& worker : fleet.workers)
    calls.emplace_back([&worker] {
      CHECK(worker->post("/v1/groups/g/all_reduce", R"({"tensor":"x","output":"y","timeout_ms":10000})").status == 200);
    });
  for (auto& call : calls) call.join();
  for (std::size_t i = 0; i < fleet.size(); ++i) {
    fleet.end(i);
    fleet.start(i);
  }
  fleet.etcd.start(1);
  fleet.etcd.start(0);
  REQUIRE(eventually([&] { return fleet.leader() != nullptr; }, 60s));
  CHECK(eventually([&] { return fleet.launches(fleet.leader()); }, 30s));
  CHECK(fleet.leader()->get("/v1/groups/g").json().at("epoch") == 1);
}

TEST_CASE("a client that follows events continues at the next leader where it was") {
  if (is_etcd_missing()) return;
  Fleet fleet({.etcds = 1, .coordinators = 2});
  auto* const leader = fleet.leader();
  // Returns the text of the event stream after `last_id`, up to the first mention of `until`.
  auto const follow = [](Service const& service, std::string const& path, std::string const& last_id,
                         std::string const& until) {
    httplib::Client client(service.url);
    client.set_read_timeout(20s);
    std::string text;
    httplib::Headers headers{{"Accept", "text/event-stream"}};
    if (!last_id.empty()) headers.emplace("Last-Event-ID", last_id);
    client.Get(path, headers, [&](char const* bytes, std::size_t length) {
      text.append(bytes, length);
      return !mentions(text, until);
    });
    return text;
  };
  auto const before = follow(*leader, "/v1/events?since=0", "", "event: group.epoch");
  auto const at = before.rfind("id: ", before.find("event: group.epoch")) + 4;
  auto const id = before.substr(at, before.find('\n', at) - at);
  leader->process.signal(SIGKILL);
  Service* next = nullptr;
  REQUIRE(eventually([&] { return (next = fleet.leader(leader)) != nullptr; }, 20s));
  REQUIRE(next->put("/v1/groups/h", R"({"workers":["w0"]})").status == 201);
  auto const after = follow(*next, "/v1/events", id, "event: group.epoch");
  std::uint64_t number = 0;
  std::from_chars(id.data() + id.find('-') + 1, id.data() + id.size(), number);
  auto const id_after = [&](std::uint64_t events) {
    return "id: " + id.substr(0, id.find('-') + 1) + std::to_string(number + events) + "\n";
  };
  CHECK_MESSAGE(mentions(after, id_after(1) + "event: coordinator.started\n"), after);
  CHECK_MESSAGE(mentions(after, id_after(2) + "event: group.epoch\n"), after);
  CHECK_FALSE(mentions(after, "event: reset"));
}

TEST_CASE("a coordinator that listens at all addresses is known by the machine's name") {
  if (is_etcd_missing()) return;
  Etcd const etcd;
  Service const coordinator("c", {binary("chorus-coordinator"), "--port", "0", "--host", "0.0.0.0",
                                  "--insecure-no-auth", "--etcd", etcd.urls(), "--log-level", "error"});
  REQUIRE(eventually([&] { return coordinator.is_ready(); }));
  std::array<char, 256> name{};
  REQUIRE(::gethostname(name.data(), name.size() - 1) == 0);
  auto const url = "http://" + std::string(name.data()) + ":" + std::to_string(coordinator.port());
  auto const status = coordinator.get("/v1/status").json();
  CHECK(status.at("coordinator").at("url").as_string() == url);
}

TEST_CASE("etcd over TLS needs its authority and the coordinator's certificate, and an error names what is missing") {
  if (is_etcd_missing()) return;
  Authority authority;
  auto const server = authority.issue("etcd", {"127.0.0.1", "localhost"});
  auto const client = authority.issue("coordinator", {"coordinator"});
  ScratchDirectory const here;
  HeldPort const port, peer;
  auto const url = "https://127.0.0.1:" + port.text(), peer_url = "http://127.0.0.1:" + peer.text();
  Process const etcd({"/usr/bin/etcd",
                      "--data-dir",
                      here / "data",
                      "--listen-client-urls",
                      url,
                      "--advertise-client-urls",
                      url,
                      "--cert-file",
                      server.certificate,
                      "--key-file",
                      server.key,
                      "--trusted-ca-file",
                      authority.path(),
                      "--client-cert-auth",
                      "--listen-peer-urls",
                      peer_url,
                      "--initial-advertise-peer-urls",
                      peer_url,
                      "--initial-cluster",
                      "default=" + peer_url,
                      "--enable-v2=false",
                      "--logger",
                      "zap",
                      "--log-level",
                      "error"});
  std::vector<std::string> const arguments{binary("chorus-coordinator"),
                                           "--port",
                                           "0",
                                           "--log-level",
                                           "error",
                                           "--etcd",
                                           url,
                                           "--etcd-ca",
                                           authority.path(),
                                           "--etcd-cert",
                                           client.certificate,
                                           "--etcd-key",
                                           client.key};
  std::unique_ptr<Service> coordinator;
  // A coordinator ends if etcd does not answer it.
  auto const leads = [&] {
    if (!coordinator || !coordinator->is_ready()) coordinator = std::make_unique<Service>("c", arguments);
    return eventually([&] { return coordinator->is_ready(); }, 4s);
  };
  REQUIRE(eventually(leads, 40s));
  REQUIRE(coordinator->get("/v1/status").json().at("coordinator").at("store").at("kind") == "etcd");
  auto const unknown = first_error({"--port", "0", "--etcd", url}, 1);
  CHECK_MESSAGE(mentions(unknown, "certificate"), unknown);
  auto const unnamed = first_error({"--port", "0", "--etcd", url, "--etcd-ca", authority.path()}, 1);
  CHECK_MESSAGE(mentions(unnamed, url), unnamed);
}

TEST_CASE("invalid flags are refused with one line") {
  if (is_etcd_missing()) return;
  Etcd etcd;
  auto const two_stores = first_error({"--etcd", etcd.urls(), "--journal", "/tmp/j"}, 2);
  CHECK(mentions(two_stores, "--journal excludes --etcd"));
  CHECK(mentions(two_stores, "chorus-coordinator.service sets CHORUS_JOURNAL"));
  for (auto const* flag : {"--cluster", "--etcd-user", "--etcd-lease-s"})
    CHECK(mentions(first_error({"--port", "0", flag, "5"}, 2), std::string(flag) + " requires --etcd"));
  CHECK(mentions(first_error({"--etcd", etcd.urls(), "--etcd-user", "u"}, 2), "requires --etcd-password-file"));
  CHECK(mentions(first_error({"--etcd", "etcd:2379"}, 2), "does not begin with http"));
  CHECK(mentions(first_error({"--etcd", etcd.urls(), "--cluster", "a/b"}, 2), "a/b"));
  for (auto const* text : {"c1", "http://c1:7070", "c1:", ":7070", "c1:x", "c1:0", "c1:65536", "c1:7x"})
    CHECK(mentions(first_error({"--etcd", etcd.urls(), "--advertise", text}, 2), "is not HOST:PORT"));
  // An etcd user with a wrong password.
  ScratchDirectory const here;
  write_file(here / "password", "wrong\n");
  etcd.post("/v3/auth/user/add", R"({"name":"root","password":"right"})");
  etcd.post("/v3/auth/user/grant", R"({"user":"root","role":"root"})");
  HeldPort const nobody;
  CHECK(mentions(first_error({"--port", "0", "--etcd", "http://127.0.0.1:" + nobody.text()}, 1), "connection refused"));
  etcd.post("/v3/kv/put", R"({"key":"L2Nob3J1cy9uZXdlci9mb3JtYXQ=","value":"OSAx"})");  // /chorus/newer/format: 9 1
  CHECK(mentions(first_error({"--port", "0", "--etcd", etcd.urls(), "--cluster", "newer"}, 1),
                 "of a format that this release does not know"));
  etcd.post("/v3/auth/enable", "{}");
  CHECK(mentions(first_error({"--port", "0", "--etcd", etcd.urls()}, 1), "user name is empty"));
  CHECK(mentions(
      first_error(
          {"--port", "0", "--etcd", etcd.urls(), "--etcd-user", "root", "--etcd-password-file", here / "password"}, 1),
      "authentication failed"));
  write_file(here / "password", "right\n");
  Service const let_in("c", {binary("chorus-coordinator"), "--port", "0", "--etcd", etcd.urls(), "--etcd-user", "root",
                             "--etcd-password-file", here / "password", "--log-level", "error"});
  CHECK(eventually([&] { return let_in.is_ready(); }));
}
