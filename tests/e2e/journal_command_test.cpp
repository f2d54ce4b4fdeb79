// `chorus journal` moves a coordinator's rows from its journal to etcd and back, and the next coordinator goes on with
// them. A move that is not possible is refused with one line.
#include <doctest/doctest.h>
#include <signal.h>

#include <algorithm>

#include "tests/support/fleets/etcd.hpp"
#include "tests/support/fleets/parameters.hpp"
#include "tests/support/fleets/secure_fleet.hpp"
#include "tests/support/mentions.hpp"
#include "tests/support/scratch_directory.hpp"

using namespace chorus::testing;

namespace {

using Words = std::vector<std::string>;

Words operator+(Words words, Words const& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

Words at_journal(std::string const& path) { return {"--journal", path}; }
Words at_etcd(Etcd const& etcd, std::string const& cluster) { return {"--etcd", etcd.urls(), "--cluster", cluster}; }

Ran run_journal(std::string const& direction, std::string const& file, Words const& store) {
  return run(Words{binary("chorus"), "journal", direction, file} + store);
}

void moves(std::string const& direction, std::string const& file, Words const& store) {
  auto const ran = run_journal(direction, file, store);
  REQUIRE_MESSAGE(ran.status == 0, ran.output);
}

// Checks that the command fails with one line on standard error, and returns the line.
std::string refused(std::string const& direction, std::string const& file, Words const& store, int status = 1) {
  auto const ran = run_journal(direction, file, store);
  CHECK_MESSAGE(ran.status == status, ran.output);
  if (status == 1) CHECK_MESSAGE(std::ranges::count(ran.output, '\n') == 1, ran.output);
  return ran.output;
}

bool is_skipped() {
  auto const why = Etcd::missing();
  if (!why.empty()) MESSAGE("skipped: " << why);
  return !why.empty();
}

// Two workers that stay, and several coordinators, one after another, on one port.
class Fleet {
 public:
  explicit Fleet(Words const& store) {
    start(store);
    for (std::uint64_t i = 0; i < 2; ++i) {
      auto const id = "w" + std::to_string(i);
      workers.push_back(std::make_unique<Service>(
          id, Words{binary("chorus-worker"), "--port", "0", "--coordinator", coordinator().url, "--id", id,
                    "--locality", "host=h0", "--log-level", "error"}));
      REQUIRE(workers.back()->put_tensor("x", "u64", std::vector<std::uint64_t>(1000, i + 1)).status == 201);
    }
    for (auto const& worker : workers) REQUIRE(eventually([&] { return worker->get("/readyz").status == 200; }));
    client_.ask(workers[0]->url);
  }

  void start(Words const& store) {
    coordinator_ = std::make_unique<Service>(
        "coordinator", Words{binary("chorus-coordinator"), "--port", port_.text(), "--log-level", "error"} + store);
    REQUIRE(eventually([&] { return coordinator().is_ready(); }));
  }
  void stop() {
    coordinator().process.signal(SIGTERM);
    REQUIRE(coordinator().process.wait() == 0);
  }
  [[nodiscard]] Service& coordinator() { return *coordinator_; }

  void make_everything() {
    REQUIRE(coordinator().put("/v1/groups/g", R"({"workers":["w0","w1"]})").status == 201);
    REQUIRE(coordinator().put("/v1/groups/g", R"({"workers":["w1","w0"]})").status / 100 == 2);  // a second epoch
    auto const made = coordinator().put("/v1/parameters/p", R"({"group":"g","shape":[1000],"replicas":2,"shards":3})");
    REQUIRE_MESSAGE(made.status == 201, made.body);
    REQUIRE(eventually([&] { return parameter().at("state") == "ready"; }));
    push();
    launch("first");
  }
  void launch(std::string const& id) {
    auto const done = coordinator().put("/v1/collectives/" + id + "?wait=20s", R"({"group":"g","tensor":"x"})");
    REQUIRE_MESSAGE(done.status == 200, done.body);
    REQUIRE_MESSAGE(done.json().at("state") == "succeeded", done.body);
  }
  void push() {
    auto const ones = ParameterClient::bytes(std::vector<float>(1000, 1));
    REQUIRE(eventually([&] { return client_.push("p", ones).status == 200; }));
  }
  [[nodiscard]] std::vector<float> values() const {
    auto const pulled = ParameterClient(workers[1]->url, "reader").pull("p");
    REQUIRE_MESSAGE(pulled.status == 200, pulled.body);
    return ParameterClient::values<float>(pulled.body);
  }
  [[nodiscard]] boost::json::value parameter() { return coordinator().get("/v1/parameters/p").json(); }
  [[nodiscard]] std::int64_t epoch() { return coordinator().get("/v1/groups/g").json().at("epoch").as_int64(); }
  [[nodiscard]] std::int64_t last_event() { return coordinator().get("/v1/status").json().at("last_event").as_int64(); }
  // Returns the run number of a collective that has succeeded.
  [[nodiscard]] std::uint64_t run_of(std::string const& id) {
    auto const record = coordinator().get("/v1/collectives/" + id).json();
    REQUIRE(record.at("state") == "succeeded");
    return record.at("run").to_number<std::uint64_t>();
  }
  [[nodiscard]] boost::json::object store() {
    return coordinator().get("/v1/status").json().at("coordinator").at("store").as_object();
  }

  std::vector<std::unique_ptr<Service>> workers;

 private:
  HeldPort const port_;
  std::unique_ptr<Service> coordinator_;
  ParameterClient client_{"", "client"};
};

std::string field_of(boost::json::object const& object, char const* name) {
  return std::string(object.at(name).as_string());
}

}  // namespace

TEST_CASE("a journal moves to etcd and back, and every coordinator continues where the one before it ended") {
  if (is_skipped()) return;
  ScratchDirectory const here;
  Etcd const etcd;
  Fleet fleet(at_journal(here / "old"));
  fleet.make_everything();
  auto const epoch = fleet.epoch();
  CHECK(epoch == 2);
  auto const run_of_first = fleet.run_of("first");
  auto const events = fleet.last_event();
  CHECK(field_of(fleet.store(), "kind") == "sqlite");
  CHECK(field_of(fleet.store(), "place") == here / "old");

  fleet.stop();
  moves("export", here / "moved", at_journal(here / "old"));
  moves("import", here / "moved", at_etcd(etcd, "training"));
  fleet.start(at_etcd(etcd, "training"));
  CHECK(field_of(fleet.store(), "kind") == "etcd");
  CHECK(field_of(fleet.store(), "cluster") == "training");
  CHECK(fleet.epoch() == epoch);
  CHECK(fleet.run_of("first") == run_of_first);
  CHECK(fleet.last_event() > events);
  REQUIRE(eventually([&] { return fleet.parameter().at("state") == "ready"; }));
  CHECK(fleet.values() == std::vector<float>(1000, 1));
  fleet.push();
  fleet.launch("second");
  fleet.launch("first");  // known: it does not run again
  CHECK(fleet.workers[0]->get_tensor<std::uint64_t>("x") == std::vector<std::uint64_t>(1000, 6));
  auto const later_events = fleet.last_event();

  fleet.stop();
  moves("export", here / "back", at_etcd(etcd, "training"));
  // The export has rows only, and not the leader's key.
  CHECK_FALSE(mentions(content_of(here / "back"), "/chorus/training"));
  moves("import", here / "back", at_journal(here / "new"));
  fleet.start(at_journal(here / "new"));
  CHECK(field_of(fleet.store(), "place") == here / "new");
  CHECK(fleet.epoch() == epoch);
  CHECK(fleet.run_of("first") == run_of_first);
  CHECK(fleet.run_of("second") > 0);
  CHECK(fleet.last_event() > later_events);
  REQUIRE(eventually([&] { return fleet.parameter().at("state") == "ready"; }));
  CHECK(fleet.values() == std::vector<float>(1000, 2));
  fleet.push();
  fleet.launch("third");
  CHECK(fleet.workers[0]->get_tensor<std::uint64_t>("x") == std::vector<std::uint64_t>(1000, 12));
  REQUIRE(fleet.coordinator().put("/v1/groups/g", R"({"workers":["w0","w1"]})").status / 100 == 2);
  CHECK(fleet.epoch() == epoch + 1);
}

TEST_CASE("an export goes through a pipe to an import") {
  ScratchDirectory const here;
  Service coordinator(
      "c", Words{binary("chorus-coordinator"), "--port", "0", "--log-level", "error"} + at_journal(here / "old"));
  coordinator.process.signal(SIGTERM);
  REQUIRE(coordinator.process.wait() == 0);
  auto const chorus = binary("chorus") + " journal ";
  auto const piped =
      run({"/bin/sh", "-c",
           chorus + "export - --journal " + (here / "old") + " | " + chorus + "import - --journal " + (here / "new")});
  CHECK_MESSAGE(piped.status == 0, piped.output);
  moves("export", here / "one", at_journal(here / "old"));
  moves("export", here / "two", at_journal(here / "new"));
  CHECK(content_of(here / "one") == content_of(here / "two"));
  CHECK(content_of(here / "one").size() > 100);
}

TEST_CASE("a store that a coordinator uses is neither exported nor imported into") {
  if (is_skipped()) return;
  ScratchDirectory const here;
  Etcd const etcd;
  Fleet fleet(at_journal(here / "journal"));
  CHECK(mentions(refused("export", here / "file", at_journal(here / "journal")), "another coordinator has it open"));
  fleet.stop();
  moves("export", here / "file", at_journal(here / "journal"));
  fleet.start(at_etcd(etcd, "a"));
  auto const leads = fleet.coordinator().url + " leads cluster a in etcd (" + etcd.urls() + ")";
  CHECK(mentions(refused("export", here / "other", at_etcd(etcd, "a")), leads));
  CHECK(mentions(refused("import", here / "file", at_etcd(etcd, "a")), leads));
  CHECK(fleet.coordinator().get("/readyz").status == 200);
  // No coordinator uses another cluster in the same etcd.
  moves("import", here / "file", at_etcd(etcd, "b"));
  fleet.stop();
  CHECK(mentions(refused("import", here / "file", at_etcd(etcd, "a")), "cluster a) is not empty"));
  CHECK(mentions(refused("import", here / "file", at_journal(here / "journal")), "is not empty"));
  // A refused import has changed no row.
  moves("export", here / "again", at_journal(here / "journal"));
  CHECK(content_of(here / "again") == content_of(here / "file"));
}

TEST_CASE("rows that cannot be imported or exported are refused with one line") {
  if (is_skipped()) return;
  ScratchDirectory const here;
  Etcd const etcd;
  { Fleet(at_journal(here / "journal")).stop(); }
  auto const file = here / "file", bad = here / "bad", nobody = here / "none";
  moves("export", file, at_journal(here / "journal"));
  auto const good = content_of(file);
  auto const store = at_etcd(etcd, "a");
  auto const refused_with = [&](std::string const& content) {
    write_file(bad, content);
    return refused("import", bad, store);
  };
  CHECK(mentions(refused_with(good.substr(0, good.size() / 2)), bad + " was cut short"));
  auto flipped = good;
  flipped[good.size() / 2] = static_cast<char>(flipped[good.size() / 2] ^ 1);
  CHECK(mentions(refused_with(flipped), bad + " is damaged"));
  auto newer = good;
  newer.replace(newer.find("\"version\":1"), 11, "\"version\":9");
  CHECK(mentions(refused_with(newer), "in version 9 of the format, and this release knows version 1"));
  CHECK(mentions(refused_with("hello\n"), "is not an export of a journal"));
  CHECK(mentions(refused("import", nobody, store), nobody + ": No such file or directory"));
  CHECK(mentions(refused("export", here / "x", at_journal(nobody)), "there is no journal " + nobody));
  CHECK(mentions(refused("export", here / "x", at_etcd(etcd, "unknown")), "there is no cluster unknown in etcd"));
  CHECK(mentions(refused("export", file, at_journal(here / "journal")), "exists: --force takes its place"));
  HeldPort const silent;
  CHECK(mentions(refused("import", file, {"--etcd", "http://127.0.0.1:" + silent.text()}), "connection refused"));
  // No refused import has written a row.
  moves("import", file, store);
  moves("export", here / "of_a", store);
  CHECK(mentions(refused("import", here / "of_a", at_etcd(etcd, "b")),
                 "the rows are of cluster a, and not of cluster b"));
  CHECK(mentions(refused("export", here / "x", {}, 2), "--journal FILE or --etcd URLS has to name the store"));
  CHECK(mentions(refused("export", here / "x", store + at_journal(here / "journal"), 2), "excludes"));
}

TEST_CASE("status names the leader, its store, and the answer of every coordinator") {
  if (is_skipped()) return;
  Etcd const etcd;
  Service const first(
      "c0", Words{binary("chorus-coordinator"), "--port", "0", "--log-level", "error"} + at_etcd(etcd, "training"));
  REQUIRE(eventually([&] { return first.is_ready(); }));
  Service const second(
      "c1", Words{binary("chorus-coordinator"), "--port", "0", "--log-level", "error"} + at_etcd(etcd, "training"));
  REQUIRE(eventually([&] { return mentions(second.get("/readyz").body, first.url + " leads"); }));
  HeldPort const nobody;
  auto const unreachable = "http://127.0.0.1:" + nobody.text();
  auto const list = unreachable + "," + second.url + "," + first.url;
  auto const told = run({binary("chorus"), "--coordinator", list, "status"});
  CHECK(told.status == 0);
  for (auto const& part :
       {"leader: " + first.url + " since ", "store: etcd cluster training at " + etcd.urls(),
        "coordinator " + unreachable + ": unreachable",
        "coordinator " + second.url + ": standby, " + first.url + " leads", "coordinator " + first.url + ": leads"})
    CHECK_MESSAGE(mentions(told.output, part), told.output);
  auto const json = boost::json::parse(run({binary("chorus"), "--coordinator", list, "--json", "status"}).output);
  CHECK(field_of(json.at("lead").as_object(), "url") == first.url);
  CHECK(json.at("lead").at("store").at("bytes").to_number<std::uint64_t>() > 0);
  CHECK(json.at("coordinators").as_array().size() == 3);
}
