// Groups: assigned by the coordinator, called by the members' own clients.
#include <doctest/doctest.h>

#include "tests/support/mentions.hpp"
#include "tests/support/raw_http.hpp"
#include "worker/service/testing/live_group.hpp"

using namespace chorus;
using namespace chorus::service::testing;
using chorus::testing::mentions;

namespace {

constexpr auto sum_of_x = R"({"tensor":"x"})";

}  // namespace

TEST_CASE("members call their own workers, again and again") {
  LiveGroup group(4);
  group.assign(1);
  for (int call = 0; call < 10; ++call) {
    group.put_everywhere("x");
    auto const reports = group.all_reduce(sum_of_x);
    for (std::size_t rank = 0; rank < 4; ++rank) {
      INFO(reports[rank].body);
      REQUIRE(reports[rank].status == 200);
      CHECK(reports[rank].json().at("sequence") == call);
      CHECK(reports[rank].json().at("rank") == rank);
      CHECK(reports[rank].json().at("algorithm") == "ring");
      CHECK(reports[rank].json().at("version") == 2 * (call + 1));
      CHECK(group.at(rank).get_tensor<float>("x") == group.sum());
    }
  }
  CHECK(mentions(group.at(0).metrics(), R"(chorus_link_sent_bytes_total{peer="w1"})"));
}

TEST_CASE("the group's table chooses by size, unless the call says otherwise") {
  LiveGroup group(2);
  group.assign(1);
  group.put_everywhere("small", 10);
  group.put_everywhere("large", 10000);
  CHECK(group.all_reduce(R"({"tensor":"small"})")[0].json().at("algorithm") == "tree");
  CHECK(group.all_reduce(R"({"tensor":"large","algorithm":"auto"})")[0].json().at("algorithm") == "ring");
  CHECK(group.all_reduce(R"({"tensor":"large","algorithm":"centralized"})")[0].json().at("algorithm") == "centralized");
}

TEST_CASE("several calls at once on one group queue up") {
  LiveGroup group(3);
  group.assign(1);
  group.put_everywhere("x");
  auto const answers =
      at_once(3 * 5, [&](std::size_t i) { return group.at(i % 3).post("/v1/groups/g/all_reduce", sum_of_x); });
  for (auto const& answer : answers) {
    INFO(answer.body);
    CHECK(answer.status == 200);
  }
  // (1 + 2 + 3) * 3^4
  CHECK(group.at(0).get_tensor<float>("x") == std::vector<float>(1000, 486));
  CHECK(group.at(2).version_of("x") == 6);
}

TEST_CASE("in place on a group") {
  LiveGroup group(3);
  group.assign(1);
  group.put_everywhere("x", 20000);
  for (auto const& answer : group.all_reduce(R"({"tensor":"x","in_place":true,"reduce":"max"})")) {
    INFO(answer.body);
    CHECK(answer.json().at("version") == 2);
  }
  CHECK(group.at(0).get_tensor<float>("x") == std::vector<float>(20000, 3));
}

TEST_CASE(
    "members that call different things all fail with both descriptions, and the epoch is broken until there is a new "
    "one") {
  LiveGroup group(2);
  group.assign(1);
  group.put_everywhere("x");
  auto const answers = at_once(2, [&](std::size_t rank) {
    return group.at(rank).post("/v1/groups/g/all_reduce",
                               rank == 0 ? R"({"tensor":"x","reduce":"sum"})" : R"({"tensor":"x","reduce":"max"})");
  });
  for (auto const& answer : answers) {
    INFO(answer.body);
    CHECK(answer.code() == "plan_mismatch");
    CHECK(mentions(answer.body, "sum"));
    CHECK(mentions(answer.body, "max"));
  }
  CHECK(group.at(0).post("/v1/groups/g/all_reduce", sum_of_x).code() == "group_broken");
  CHECK(group.at(0).get("/v1/groups/g").json().at("state") == "broken");
  CHECK(group.at(0).get_tensor<float>("x") == std::vector<float>(1000, 1));

  group.assign(2);
  CHECK(group.at(0).get("/v1/groups/g").json().at("state") == "ready");
  for (auto const& answer : group.all_reduce(sum_of_x)) CHECK(answer.status == 200);
}

TEST_CASE("a member whose part of a failed call ended well hears of the failure at its next call") {
  LiveGroup group(2);
  group.assign(1);
  group.put_everywhere("x");
  auto const answers = at_once(2, [&](std::size_t rank) {
    return group.at(rank).post("/v1/groups/g/broadcast",
                               rank == 0 ? R"({"tensor":"x"})" : R"({"tensor":"y","dtype":"f64","shape":[3]})");
  });
  CHECK(answers[1].code() == "plan_mismatch");
  auto const next = group.at(0).post("/v1/groups/g/all_reduce", R"({"tensor":"x","timeout_ms":10000})");
  INFO(next.body);
  CHECK((next.code() == "plan_mismatch" || next.code() == "group_broken"));
}

TEST_CASE("an error that only one member can see is refused there, and the others' calls still fit the corrected one") {
  LiveGroup group(2);
  group.assign(1);
  group.put_everywhere("x");
  auto& worker = group.at(0);
  CHECK(worker.post("/v1/groups/g/all_reduce", R"({"tensor":"nobody"})").code() == "unknown_tensor");
  CHECK(worker.post("/v1/groups/g/all_reduce", R"({"tensor":"x","reduce":"mean"})").code() == "invalid_field");
  CHECK(worker.post("/v1/groups/g/all_reduce", R"({"tensor":"x","algorithm":"rign"})").code() == "invalid_field");
  CHECK(worker.post("/v1/groups/g/all_reduce", R"({"tensor":"x","timeout_ms":0})").code() == "invalid_field");
  CHECK(worker.post("/v1/groups/g/all_reduce", R"({"tesnor":"x"})").code() == "invalid_field");
  CHECK(worker.post("/v1/groups/g/all_redcue", sum_of_x).code() == "not_found");
  CHECK(worker.post("/v1/groups/g/broadcast", R"({"tensor":"x","algorithm":"ring_naive"})").code() == "unsupported");
  CHECK(worker.post("/v1/groups/nobody/all_reduce", sum_of_x).code() == "unknown_group");
  for (auto const& answer : group.all_reduce(sum_of_x)) {
    INFO(answer.body);
    CHECK(answer.json().at("sequence") == 0);
  }
}

TEST_CASE("a new epoch ends the calls of the old one") {
  LiveGroup group(2);
  group.assign(1);
  group.put_everywhere("x");
  Answer waiting;
  std::thread call([&] { waiting = group.at(0).post("/v1/groups/g/all_reduce", sum_of_x); });
  while (!mentions(group.at(1).metrics(), R"(chorus_link_connections{peer="w0",link="shm"} 1)")) continue;
  group.assign(2);
  call.join();
  INFO(waiting.body);
  CHECK(waiting.code() == "epoch_fenced");
  CHECK(mentions(waiting.body, "epoch 2"));
  for (auto const& answer : group.all_reduce(sum_of_x)) CHECK(answer.status == 200);
}

TEST_CASE("a member that never calls is named at the deadline") {
  LiveGroup group(2);
  group.assign(1);
  group.put_everywhere("x");
  auto const answer = group.at(0).post("/v1/groups/g/all_reduce", R"({"tensor":"x","timeout_ms":300})");
  INFO(answer.body);
  CHECK(answer.code() == "deadline_exceeded");
  CHECK(mentions(answer.body, "w1"));
  CHECK(group.at(0).post("/v1/groups/g/all_reduce", sum_of_x).code() == "group_broken");
}

TEST_CASE("an epoch below the highest seen is refused, also when the group is gone") {
  LiveGroup group(2);
  group.assign(5);
  auto const old = group.assign(0, 4);
  CHECK(old.code() == "epoch_fenced");
  CHECK(old.json().at("errors").at(0).at("pointer") == "/group/epoch");
  CHECK(old.json().at("errors").at(0).at("detail") == "5");
  CHECK(group.assign(0, 5).status == 204);
  CHECK(group.assign(0, 5, [](auto& m) { m.group.members[1].incarnation = "0000000000000099"; }).code() ==
        "epoch_fenced");
  CHECK(group.assign(0, 5, [](auto& m) { m.token = "0000000000000001"; }).json().at("errors").at(0).at("detail") ==
        "5");
  CHECK(group.assign(0, 6, [](auto& m) { m.group.members[0].incarnation = "0000000000000099"; }).status == 204);
  CHECK(group.at(0).get("/v1/groups/g").code() == "unknown_group");
  CHECK(group.assign(0, 5).code() == "epoch_fenced");
  CHECK(group.assign(0, 7).status == 204);
}

TEST_CASE("a deleted group ends its calls, and its name is free for a later one") {
  LiveGroup group(2);
  group.assign(1);
  group.put_everywhere("x");
  Answer waiting;
  std::thread call([&] { waiting = group.at(0).post("/v1/groups/g/all_reduce", sum_of_x); });
  while (!mentions(group.at(1).metrics(), R"(chorus_link_connections{peer="w0",link="shm"} 1)")) continue;
  group.assign(2, [](auto& m) { m.group.members.clear(); });
  call.join();
  INFO(waiting.body);
  CHECK(waiting.code() == "epoch_fenced");
  CHECK(mentions(waiting.body, "group g was deleted"));
  CHECK(group.at(0).get("/v1/groups").json().at("items").as_array().empty());
  CHECK(group.at(0).post("/v1/groups/g/all_reduce", sum_of_x).code() == "unknown_group");
  group.assign(3);
  for (auto const& answer : group.all_reduce(sum_of_x)) CHECK(answer.status == 200);
}

TEST_CASE("impossible assignments are refused") {
  LiveGroup group(2);
  auto const refused = [&](LiveGroup::Change const& change, std::string const& code, std::string const& part) {
    auto const answer = group.assign(0, 1, change);
    INFO(answer.body);
    CHECK(answer.code() == code);
    CHECK(mentions(answer.body, part));
  };
  refused([](auto& m) { m.worker = "w9"; }, "epoch_fenced", "w9");
  refused([](auto& m) { m.incarnation = "0000000000000099"; }, "epoch_fenced", "0000000000000099");
  refused([](auto& m) { m.incarnation = "?"; }, "invalid_field", "/incarnation");
  refused([](auto& m) { m.token = "?"; }, "invalid_field", "/token");
  refused([](auto& m) { m.group.name = "h"; }, "invalid_field", "/group/name");
  refused([](auto& m) { m.group.members[1].rank = 0; }, "invalid_field", "/group/members/1/rank");
  refused([](auto& m) { m.group.members[1].worker = ""; }, "invalid_field", "/group/members/1/worker");
  refused([](auto& m) { m.group.members[1].incarnation = ""; }, "invalid_field", "/group/members/1/incarnation");
  for (auto const& order : std::vector<std::vector<std::uint32_t>>{{}, {0}, {1, 1}, {1, 2}, {1, 0, 2}})
    refused([&](auto& m) { m.group.by_position = order; }, "invalid_field", "/group/by_position");
  CHECK(group.at(0).put("/v1/groups/g", "[]").status == 422);
  // A coordinator of a newer release may send fields that this worker does not know.
  auto const newer = group.at(0).put("/v1/groups/g", R"({"mood":"good"})").body;
  CHECK(mentions(newer, "/worker"));
  CHECK(!mentions(newer, "mood"));
  CHECK(group.at(0).get("/v1/groups").json().at("items").as_array().empty());
}

TEST_CASE("a group of as many members as a coordinator makes, with long names, is taken") {
  LiveGroup group(1);
  auto const answer = group.assign(0, 1, [](auto& m) {
    auto const long_name = [](std::uint32_t rank) { return std::string(58, 'w') + '-' + std::to_string(10000 + rank); };
    for (std::uint32_t rank = 1; rank < 4096; ++rank) {
      auto member = m.group.members.front();
      member.rank = rank;
      member.worker = long_name(rank);
      member.url = "http://" + long_name(rank) + ".workers.default.svc.cluster.local:7071";
      member.locality = {"europe-north", "europe-north-1", "rack-17", long_name(rank)};
      m.group.members.push_back(std::move(member));
    }
  });
  INFO(answer.body);
  CHECK(answer.status == 204);
  CHECK(group.at(0).get("/v1/groups/g").json().at("members").as_array().size() == 4096);
}

TEST_CASE("a group that has lost a member runs nothing and names it") {
  LiveGroup group(2);
  group.assign(1);
  group.put_everywhere("x");
  group.assign(1, [](auto& m) {
    m.group.state = "degraded";
    m.group.lost = {"w1"};
  });
  auto const answer = group.at(0).post("/v1/groups/g/all_reduce", sum_of_x);
  CHECK(answer.code() == "group_broken");
  CHECK(mentions(answer.body, "w1"));
  CHECK(answer.json().at("ranks").at(0) == 1);
  CHECK(group.at(0).get("/v1/groups").json().at("items").at(0).at("state") == "degraded");
}

TEST_CASE("a call that is given up breaks the epoch, because its number is used up") {
  boost::asio::io_context control;
  service::GroupEpoch epoch(control.get_executor(), {});
  {
    service::GroupEpoch::Turn turn(epoch);
    turn.finished();
  }
  CHECK_FALSE(epoch.unusable().has_value());
  { service::GroupEpoch::Turn const turn(epoch); }
  CHECK(epoch.unusable().value().code == http::ProblemCode::group_broken);
}

TEST_CASE("links: a peer that does not introduce itself does not get in") {
  LiveGroup group(1);
  auto const answer_to = [&](std::string const& fields) {
    chorus::testing::RawConnection connection(group.at(0).port());
    connection.send("GET /v1/link HTTP/1.1\r\nHost: localhost\r\n" + fields + "\r\n");
    return chorus::testing::status_of(connection.read_answer(std::chrono::seconds(10)));
  };
  std::string const upgrade = "Connection: Upgrade\r\nUpgrade: chorus-link/1\r\n";
  std::string const incarnation = "Chorus-Incarnation: 0000000000000001\r\n";
  CHECK(answer_to("") == 400);
  CHECK(answer_to("Connection: Upgrade\r\nUpgrade: websocket\r\n") == 400);
  CHECK(answer_to(upgrade) == 400);
  CHECK(answer_to(upgrade + "Chorus-Worker: w1\r\n") == 400);
  CHECK(answer_to(upgrade + "Chorus-Worker: w1\r\nChorus-Incarnation: 1\r\n") == 400);
  CHECK(answer_to(upgrade + "Chorus-Worker: a b\r\n" + incarnation) == 400);
  CHECK(answer_to(upgrade + "Chorus-Worker: w0\r\n" + incarnation) == 400);
  CHECK(answer_to(upgrade + "Chorus-Worker: w1\r\n" + incarnation) == 101);
}

namespace {

// Waits until the number of the call is drawn at this rank.
void await_call(LiveWorker& worker, std::uint64_t sequence) {
  while (worker.get("/v1/groups/g").json().at("next_sequence").to_number<std::uint64_t>() <= sequence)
    std::this_thread::yield();
}

// The call of this member ends because another one has told of its failure, and not at its own deadline.
void is_told(LiveWorker& worker, std::string const& body, std::string const& why) {
  auto const told = worker.post("/v1/groups/g/all_reduce", body);
  INFO(told.body);
  CHECK(told.status >= 400);
  CHECK(mentions(told.body, why));
}

}  // namespace

TEST_CASE("a member whose tensor was changed during a call cannot commit, and the others hear of it at their next") {
  LiveGroup group(3);
  group.assign(1);
  group.put_everywhere("x");
  std::vector<Answer> answers(3);
  std::vector<std::thread> early;
  for (std::size_t rank = 0; rank < 2; ++rank)
    early.emplace_back([&, rank] { answers[rank] = group.at(rank).post("/v1/groups/g/all_reduce", sum_of_x); });
  await_call(group.at(0), 0);
  REQUIRE(group.at(0).put_tensor("x", "f32", std::vector<float>(1000, 7)).status / 100 == 2);
  answers[2] = group.at(2).post("/v1/groups/g/all_reduce", sum_of_x);
  for (auto& call : early) call.join();
  CHECK(answers[0].status == 409);
  for (std::size_t rank : {1, 2}) {
    CHECK(answers[rank].status == 200);
    is_told(group.at(rank), sum_of_x, answers[0].json().at("detail").as_string().c_str());
  }
}

TEST_CASE("a waiting call whose tensor goes before its turn is refused, and the others hear of it") {
  LiveGroup group(2);
  group.assign(1);
  group.put_everywhere("x");
  group.put_everywhere("y");
  auto& worker = group.at(0);
  Answer first, second;
  std::thread of_x([&] { first = worker.post("/v1/groups/g/all_reduce", sum_of_x); });
  await_call(worker, 0);
  std::thread of_y([&] { second = worker.post("/v1/groups/g/all_reduce", R"({"tensor":"y"})"); });
  await_call(worker, 1);
  CHECK(worker.erase("/v1/tensors/y").status == 204);
  CHECK(group.at(1).post("/v1/groups/g/all_reduce", sum_of_x).status == 200);
  of_x.join();
  of_y.join();
  CHECK(first.status == 200);
  CHECK(second.code() == "unknown_tensor");
  is_told(group.at(1), R"({"tensor":"y"})", second.json().at("detail").as_string().c_str());
}

TEST_CASE("a call whose time ends before its turn fails, the call before it ends well, and the others hear of it") {
  LiveGroup group(2);
  group.assign(1);
  group.put_everywhere("x");
  Answer first;
  std::thread waiting([&] { first = group.at(0).post("/v1/groups/g/all_reduce", sum_of_x); });
  await_call(group.at(0), 0);
  auto const second = group.at(0).post("/v1/groups/g/all_reduce", R"({"tensor":"x","timeout_ms":1})");
  CHECK(second.code() == "deadline_exceeded");
  CHECK(mentions(second.body, "still waited for call 0"));
  CHECK(group.at(1).post("/v1/groups/g/all_reduce", sum_of_x).status == 200);
  waiting.join();
  CHECK(first.status == 200);
  is_told(group.at(1), sum_of_x, "still waited for call 0");
}
