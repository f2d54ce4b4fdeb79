// Groups whose ranks follow measured links, over real sockets with workers that report the measurements of the story.
#include <doctest/doctest.h>

#include <set>

#include "server/coordinator/testing/fake_worker.hpp"
#include "tests/support/scratch_directory.hpp"

using namespace chorus;
using namespace chorus::coordinator;
using boost::asio::awaitable;
using chorus::testing::ScratchDirectory;

namespace {

constexpr char const* of_all = R"({"size":8,"order":"measured"})";

CoordinatorOptions patient_for(std::chrono::milliseconds pair) {
  auto options = impatient_options();
  options.cluster.pairs = {pair, std::chrono::hours(2)};
  return options;
}

std::size_t number_of(std::string const& id) { return static_cast<std::size_t>(id.back() - '0'); }  // w0 to w7

// Two racks that the labels do not show: workers with odd and with even numbers.
api::ProbeReport way_between(std::size_t a, std::size_t b) {
  api::ProbeReport report;
  report.own_round_trip_s = 100e-6;
  report.round_trip_s = a % 2 == b % 2 ? 140e-6 : 300e-6;
  report.bytes_per_s = a % 2 == b % 2 ? 1e9 : 1e8;
  return report;
}

// Every worker has its own host. Workers refuse the measurements at joining.
awaitable<void> join_all(World* world, std::size_t first = 0) {
  auto& workers = world->workers;
  for (auto i = first; i < workers.size(); ++i) {
    workers[i]->locality.host = "h" + std::to_string(i);
    CHECK((co_await world->join(i)).status == 201);
    if (i > 0) CHECK(co_await workers[i]->until_asked_to_measure(1));
    workers[i]->asked_to_measure.clear();
  }
  for (std::size_t a = 0; a < workers.size(); ++a)
    for (std::size_t b = 0; b < workers.size(); ++b)
      if (a != b) workers[a]->ways["w" + std::to_string(b)] = way_between(a, b);
}

std::size_t pairs_asked(World const& world) {
  std::size_t count = 0;
  for (auto const& worker : world.workers) count += worker->asked_to_measure.size();
  return count;
}

std::vector<std::string> members_of(World::Said const& group) {
  std::vector<std::string> ids;
  for (std::size_t rank = 0; !group.text("/members/" + std::to_string(rank)).empty(); ++rank)
    ids.push_back(group.text("/members/" + std::to_string(rank) + "/worker"));
  return ids;
}

std::size_t crossings(std::vector<std::string> const& ids) {
  std::size_t count = 0;
  for (std::size_t rank = 0; rank < ids.size(); ++rank)
    count += number_of(ids[rank]) % 2 != number_of(ids[(rank + 1) % ids.size()]) % 2 ? 1 : 0;
  return count;
}

double number(World::Said const& said, char const* pointer) {
  return said.json.at_pointer(pointer).to_number<double>();
}

awaitable<void> finds_the_racks(World* world) {
  co_await join_all(world);
  auto const by_locality = co_await world->put("/v1/groups/g", R"({"size":8})");
  CHECK(by_locality.text("/order") == "locality");
  CHECK(crossings(members_of(by_locality)) == 8);
  CHECK(pairs_asked(*world) == 0);
  CHECK((co_await world->get("/v1/links?group=g")).body == R"({"items":[]})");

  auto const group = co_await world->put("/v1/groups/g", of_all);
  CHECK(group.status == 200);
  CHECK(group.text("/order") == "measured");
  CHECK(group.text("/requested/order") == "measured");
  CHECK(crossings(members_of(group)) == 2);
  CHECK(number(group, "/stretch/assigned") < number(group, "/stretch/arrival_order"));
  CHECK(pairs_asked(*world) == 28);
  auto const links = co_await world->get("/v1/links?group=g");
  CHECK(links.json.at("items").as_array().size() == 28);
  for (auto const& link : links.json.at("items").as_array()) {
    auto const from = number_of(link.at("from").as_string().c_str());
    auto const to = number_of(link.at("to").as_string().c_str());
    CHECK(link.at("bytes_per_s").to_number<double>() == way_between(from, to).bytes_per_s);
    CHECK(link.at("level").as_string() == "rack");
  }
  CHECK((co_await world->get("/v1/links?group=h")).code() == "unknown_group");
  // Members of earlier releases refuse unknown fields.
  auto const& told = world->workers[3]->assignments.back().group;
  CHECK_FALSE(told.order.has_value());
  CHECK_FALSE(told.requested.order.has_value());
}

awaitable<void> remembers(World* world) {
  co_await join_all(world);
  CHECK((co_await world->put("/v1/groups/h", R"({"workers":["w0","w1","w2"],"order":"measured"})")).status == 201);
  CHECK(pairs_asked(*world) == 3);
  CHECK((co_await world->put("/v1/groups/g", of_all)).status == 201);
  CHECK(pairs_asked(*world) == 28);
  CHECK((co_await world->put("/v1/groups/g", of_all)).text("/epoch") == "2");
  CHECK(pairs_asked(*world) == 28);
  // A new process has no measurements.
  FakeWorker again(world->io.get_executor(), "w5", 2);
  again.locality.host = "h5";
  again.ways = world->workers[5]->ways;
  CHECK((co_await world->join_as(again)).status == 200);
  CHECK(co_await again.until_asked_to_measure(1));
  again.asked_to_measure.clear();
  CHECK((co_await world->put("/v1/groups/g", of_all)).text("/epoch") == "3");
  CHECK(pairs_asked(*world) + again.asked_to_measure.size() == 35);
  co_await again.die();
}

awaitable<void> shrinks_and_grows(World* world) {
  co_await join_all(world);
  auto const elastic = R"({"size":8,"order":"measured","on_failure":"shrink"})";
  CHECK(crossings(members_of(co_await world->put("/v1/groups/g", elastic))) == 2);
  CHECK((co_await world->call(http::Method::delete_, "/v1/workers/w3")).status == 204);
  CHECK(co_await world->until("/v1/groups/g", "/epoch", "2"));
  auto const smaller = co_await world->get("/v1/groups/g");
  CHECK(members_of(smaller).size() == 7);
  CHECK(crossings(members_of(smaller)) == 2);
  CHECK(pairs_asked(*world) == 28);
  FakeWorker again(world->io.get_executor(), "w3", 2);
  again.locality.host = "h3";
  again.ways = world->workers[3]->ways;
  CHECK((co_await world->join_as(again)).status == 201);
  CHECK(co_await world->until("/v1/groups/g", "/epoch", "3"));
  CHECK(members_of(co_await world->get("/v1/groups/g")).back() == "w3");
  // A PUT orders the ranks again.
  CHECK(crossings(members_of(co_await world->put("/v1/groups/g", elastic))) == 2);
  CHECK(co_await again.until_asked_to_measure(1));  // because it joined
  CHECK(pairs_asked(*world) + again.asked_to_measure.size() == 28 + 7 + 1);
  co_await again.die();
}

awaitable<void> replaces_a_member_at_once(World* world) {
  co_await join_all(world);
  auto const elastic = R"({"size":4,"order":"measured","on_failure":"shrink"})";
  CHECK(members_of(co_await world->put("/v1/groups/g", elastic)).size() == 4);
  CHECK(pairs_asked(*world) == 6);
  for (auto& worker : world->workers) worker->deaf_to_probes = true;
  CHECK((co_await world->call(http::Method::delete_, "/v1/workers/w3")).status == 204);
  CHECK(co_await world->until("/v1/groups/g", "/epoch", "2"));
  auto const mended = co_await world->get("/v1/groups/g");
  CHECK(members_of(mended).size() == 4);
  CHECK(mended.text("/state") == "ready");
  CHECK(pairs_asked(*world) == 6);
  CHECK((co_await world->get("/v1/links?group=g")).json.at("items").as_array().size() == 3);
  for (auto& worker : world->workers) worker->deaf_to_probes = false;
  for (auto& worker : world->workers) worker->hear();
}

awaitable<void> goes_on_without_one_pair(World* world) {
  co_await join_all(world);
  world->workers[0]->ways.erase("w2");
  world->workers[4]->ways["w6"].bytes_per_s = 0;
  auto const group = co_await world->put("/v1/groups/g", of_all);
  CHECK(group.status == 201);
  CHECK(crossings(members_of(group)) == 2);
  CHECK((co_await world->get("/v1/links?group=g")).json.at("items").as_array().size() == 26);
  // The pair is measured again at the next PUT.
  world->workers[0]->ways["w2"] = way_between(0, 2);
  CHECK((co_await world->put("/v1/groups/g", of_all)).status == 200);
  CHECK(pairs_asked(*world) == 28 + 2);
  CHECK((co_await world->get("/v1/links?group=g")).json.at("items").as_array().size() == 27);
}

awaitable<void> is_patient_only_so_long(World* world) {
  co_await join_all(world);
  world->workers[2]->deaf_to_probes = true;
  auto const group = co_await world->put("/v1/groups/g", of_all);
  CHECK(group.status == 201);
  CHECK((co_await world->get("/v1/links?group=g")).json.at("items").as_array().size() ==
        28 - world->workers[2]->asked_to_measure.size());
  world->workers[2]->deaf_to_probes = false;
  world->workers[2]->hear();
}

// Leaves `answer` without a status if the connection has ended.
awaitable<void> put_group(World* world, World::Said* answer) {
  try {
    *answer = co_await world->put("/v1/groups/g", of_all);
  } catch (std::runtime_error const&) { answer->status = 0; }
}

awaitable<void> others_are_served_meanwhile(World* world) {
  co_await join_all(world);
  for (auto& worker : world->workers) worker->deaf_to_probes = true;
  World::Said answer;
  http::TaskGroup tasks(world->io.get_executor());
  tasks.spawn("PUT", put_group(world, &answer));
  std::multiset<std::string> busy;
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(co_await world->workers[i]->until_asked_to_measure(1));
    busy.insert(world->workers[i]->id);
    busy.insert(world->workers[i]->asked_to_measure.at(0));
  }
  CHECK(std::set<std::string>(busy.begin(), busy.end()).size() == 8);  // a round of four pairs
  CHECK(pairs_asked(*world) == 4);
  CHECK((co_await world->put("/v1/workers/w7/lease", R"({"incarnation":"0000000000000001"})")).status == 200);
  CHECK((co_await world->put("/v1/groups/h", R"({"workers":["w1","w2"]})")).status == 201);
  CHECK((co_await world->get("/v1/groups/g")).code() == "unknown_group");
  CHECK(answer.status == 0);
  for (auto& worker : world->workers) worker->deaf_to_probes = false;
  for (auto& worker : world->workers) worker->hear();
  co_await tasks.join();
  CHECK(answer.status == 201);
  CHECK(crossings(members_of(answer)) == 2);
}

awaitable<void> joins_take_turns(World* world) {
  auto& workers = world->workers;
  for (std::size_t i = 0; i < workers.size(); ++i) {
    workers[i]->locality.host = "h" + std::to_string(i);
    workers[i]->deaf_to_probes = true;
    workers[i]->ways["w0"] = way_between(i, 0);
    CHECK((co_await world->join(i)).status == 201);
  }
  CHECK(co_await workers[1]->until_asked_to_measure(1));
  CHECK(pairs_asked(*world) == 1);  // although all of them must measure the link to w0
  CHECK((co_await world->call(http::Method::delete_, "/v1/workers/w2")).status == 204);
  for (auto& worker : workers) worker->deaf_to_probes = false;
  for (auto& worker : workers) worker->hear();
  CHECK(co_await workers[3]->until_asked_to_measure(1));
  CHECK(workers[2]->asked_to_measure.empty());  // it left before its turn
  CHECK(co_await world->until("/v1/links", "/items/1/from", "w3"));
  CHECK((co_await world->get("/v1/links")).text("/items/0/from") == "w1");
}

awaitable<void> stops_in_the_middle(World* world) {
  co_await join_all(world);
  for (auto& worker : world->workers) worker->deaf_to_probes = true;
  World::Said answer;
  http::TaskGroup tasks(world->io.get_executor());
  tasks.spawn("PUT", put_group(world, &answer));
  CHECK(co_await world->workers[0]->until_asked_to_measure(1));
  co_await world->restart();
  for (auto& worker : world->workers) worker->deaf_to_probes = false;
  for (auto& worker : world->workers) worker->hear();
  co_await tasks.join();
  CHECK((answer.status == 0 || answer.code() == "unavailable"));
  CHECK((co_await world->get("/v1/groups/g")).code() == "unknown_group");
}

awaitable<void> outlives_the_coordinator(World* world) {
  co_await join_all(world);
  auto const before = members_of(co_await world->put("/v1/groups/g", of_all));
  auto const links = (co_await world->get("/v1/links?group=g")).body;
  auto const plan = (co_await world->post("/v1/plans", R"({"group":"g","bytes":1048576})")).text("/predicted_seconds");
  co_await world->restart();
  auto const after = co_await world->get("/v1/groups/g");
  CHECK(after.text("/epoch") == "1");
  CHECK(after.text("/order") == "measured");
  CHECK(members_of(after) == before);
  CHECK((co_await world->get("/v1/links?group=g")).body == links);
  CHECK((co_await world->post("/v1/plans", R"({"group":"g","bytes":1048576})")).text("/predicted_seconds") == plan);
  CHECK(members_of(co_await world->put("/v1/groups/g", of_all)) == before);
  CHECK(pairs_asked(*world) == 28);
}

awaitable<void> plans_by_the_links(World* world) {
  co_await join_all(world);
  CHECK((co_await world->put("/v1/groups/g", of_all)).status == 201);
  CHECK((co_await world->put("/v1/groups/h", R"({"size":8})")).status == 201);
  auto const ring = [](char const* group) {
    return std::string(R"({"bytes":16777216,"algorithm":"ring","group":")") + group + "\"}";
  };
  auto const measured = co_await world->post("/v1/plans", ring("g"));
  auto const by_labels = co_await world->post("/v1/plans", ring("h"));
  CHECK(measured.text("/order").empty());  // ranks are ranks already
  // The slow links have a twentieth of the bandwidth assumed between two hosts of one rack.
  CHECK(number(measured, "/predicted_seconds") > 5 * number(by_labels, "/predicted_seconds"));
  auto const ran = co_await world->post("/v1/collectives?wait=5s", R"({"group":"g","tensor":"x","algorithm":"ring"})");
  CHECK(ran.text("/state") == "succeeded");
  auto const same = co_await world->post("/v1/plans", R"({"group":"g","bytes":16,"algorithm":"ring"})");
  CHECK(ran.text("/predicted_seconds") == same.text("/predicted_seconds"));
}

awaitable<void> is_refused(World* world) {
  CHECK((co_await world->join(0)).status == 201);
  auto const too_many = co_await world->put("/v1/groups/g", R"({"size":33,"order":"measured"})");
  CHECK(too_many.status == 422);
  CHECK(too_many.text("/errors/0/pointer") == "/order");
  CHECK(too_many.text("/errors/0/detail").find("at most 32") != std::string::npos);
  CHECK((co_await world->put("/v1/groups/g", R"({"size":32,"order":"measured"})")).code() == "not_enough_workers");
  auto const unclear = co_await world->put("/v1/groups/g", R"({"size":1,"order":"by name"})");
  CHECK(unclear.text("/errors/0/pointer") == "/order");
  auto const alone = co_await world->put("/v1/groups/g", R"({"size":1,"order":"measured"})");
  CHECK(alone.status == 201);
  CHECK(alone.text("/stretch") == R"({"arrival_order":0,"assigned":0})");
}

void tell_of(std::size_t workers, awaitable<void> (*story)(World*),
             std::chrono::milliseconds pair = std::chrono::hours(1)) {
  ScratchDirectory const here;
  World world(workers, patient_for(pair), here / "journal");
  world.tell(story(&world));
}

}  // namespace

TEST_CASE("two racks that labels hide are found by measuring") { tell_of(8, finds_the_racks); }
TEST_CASE("a measured pair is not measured again") { tell_of(8, remembers); }
TEST_CASE("a measured group shrinks with known links, and grows by measuring the new ones") {
  tell_of(8, shrinks_and_grows);
}
TEST_CASE("a measured group that lost a member continues before the links of the replacement are measured") {
  tell_of(8, replaces_a_member_at_once);
}
TEST_CASE("pairs that fail count as the slowest, and are measured again at the next PUT") {
  tell_of(8, goes_on_without_one_pair);
}
TEST_CASE("a worker that does not measure in time does not hold the group up") {
  tell_of(8, is_patient_only_so_long, std::chrono::milliseconds(300));
}
TEST_CASE("while pairs are measured, round by round, everything else continues") {
  tell_of(8, others_are_served_meanwhile);
}
TEST_CASE("workers that join measure one after the other where they would use the same link") {
  tell_of(4, joins_take_turns);
}
TEST_CASE("a coordinator that stops does not wait for measurements") { tell_of(8, stops_in_the_middle); }
TEST_CASE("a measured group is the same after a restart, and nothing is measured for it") {
  tell_of(8, outlives_the_coordinator);
}
TEST_CASE("plans and runs of a measured group are costed by its links") { tell_of(8, plans_by_the_links); }
TEST_CASE("more than 32 members are not measured, and neither is a group with an unknown order") {
  tell_of(1, is_refused);
}
