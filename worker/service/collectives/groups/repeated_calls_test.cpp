// Repeated members' calls, and calls whose clients have gone.
#include <doctest/doctest.h>

#include <memory>
#include <thread>

#include "tests/support/mentions.hpp"
#include "tests/support/raw_http.hpp"
#include "worker/service/collectives/groups/unnamed_calls.hpp"
#include "worker/service/testing/live_group.hpp"

using namespace chorus;
using namespace chorus::service::testing;
using chorus::testing::mentions;
using chorus::testing::RawConnection;
using namespace std::chrono_literals;

namespace {

constexpr auto all_reduce_path = "/v1/groups/g/all_reduce";
constexpr auto of_x = R"({"tensor":"x"})";
using Floats = std::vector<float>;

// Two members with one number each.
struct TwoMembers {
  TwoMembers() { group.assign(1); }

  void put(std::size_t rank, float value, std::string const& name = "x") {
    REQUIRE(group.at(rank).put_tensor(name, "f32", Floats{value}).status / 100 == 2);
  }
  float value(std::size_t rank, std::string const& name = "x") { return group.at(rank).get_tensor<float>(name).at(0); }
  // Waits until the call's number is drawn at this rank.
  void await_call(std::size_t rank, std::uint64_t sequence) {
    while (next(rank) <= sequence) std::this_thread::yield();
  }
  // Waits until no call is under way at this rank.
  void await_end(std::size_t rank) {
    while (!group.at(rank).get("/v1/progress").json().at("items").as_array().empty()) std::this_thread::yield();
  }
  std::uint64_t next(std::size_t rank) {
    return group.at(rank).get("/v1/groups/g").json().at("next_sequence").to_number<std::uint64_t>();
  }
  std::unique_ptr<RawConnection> connect(std::size_t rank) {
    return std::make_unique<RawConnection>(group.at(rank).port());
  }

  LiveGroup group{2};
};

std::string posted(std::string const& body, std::string const& fields = "") {
  return "POST " + std::string(all_reduce_path) + " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" +
         fields + "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

httplib::Headers under_key(std::string const& value) { return {{"Idempotency-Key", value}}; }

}  // namespace

TEST_CASE("a call whose client has gone, and the same again: the group is broken with a reason, and no sum is wrong") {
  TwoMembers two;
  two.put(0, 1);
  two.put(1, 10);
  auto first = two.connect(0);
  first->send(posted(of_x));
  two.await_call(0, 0);
  first.reset();
  auto const again = two.group.at(0).post(all_reduce_path, of_x);
  INFO(again.body);
  CHECK(again.code() == "group_broken");
  CHECK(mentions(again.body, "call 0 of epoch 1 (all_reduce of x) is under way, and its client has gone"));
  // The other member is told, and its tensor is unchanged.
  auto const other = two.group.at(1).post(all_reduce_path, of_x);
  INFO(other.body);
  CHECK(other.status == 409);
  CHECK(mentions(other.body, "its client has gone"));
  CHECK(two.group.at(1).get("/v1/groups/g").json().at("state") == "broken");
  CHECK(two.value(0) == 1);
  CHECK(two.value(1) == 10);

  two.group.assign(2);
  for (auto const& answer : two.group.all_reduce(of_x)) CHECK(answer.status == 200);
  CHECK(two.value(0) == 11);
}

TEST_CASE("a call that has succeeded without its client: the next one breaks the group, and waiting calls are told") {
  TwoMembers two;
  two.put(0, 1);
  two.put(1, 10);
  auto first = two.connect(0);
  first->send(posted(of_x));
  two.await_call(0, 0);
  first.reset();
  REQUIRE(two.group.at(1).post(all_reduce_path, of_x).status == 200);
  two.put(1, 20);
  Answer waiting;
  std::thread other([&] { waiting = two.group.at(1).post(all_reduce_path, of_x); });
  two.await_call(1, 1);
  auto const again = two.group.at(0).post(all_reduce_path, of_x);
  other.join();
  INFO(again.body, waiting.body);
  CHECK(again.code() == "group_broken");
  CHECK(mentions(again.body, "has succeeded, but its client had gone before it was told"));
  CHECK(waiting.status == 409);
  CHECK(mentions(waiting.body, "its client had gone"));
  CHECK(two.value(0) == 11);
  CHECK(two.value(1) == 20);
}

TEST_CASE("an answer that its client never read counts as none: a reset of a kept connection") {
  TwoMembers two;
  two.put(0, 1);
  two.put(1, 10);
  auto first = two.connect(0);
  first->send(posted(of_x));
  REQUIRE(two.group.at(1).post(all_reduce_path, of_x).status == 200);
  first->await_bytes(20s);
  first.reset();  // closed with an answer unread, so the system sends a reset
  auto const again = two.group.at(0).post(all_reduce_path, of_x);
  INFO(again.body);
  CHECK(again.code() == "group_broken");
}

TEST_CASE("clients that read their answers and close, or go on, however they are connected, break nothing") {
  TwoMembers two;
  two.put(0, 1);
  two.put(1, 1);
  auto kept = two.connect(0);
  float sum = 1;
  for (int round = 0; round < 20; ++round, sum *= 2) {
    std::thread other([&] { CHECK(two.group.at(1).post(all_reduce_path, of_x).status == 200); });
    if (round % 2 == 0) {
      auto once = two.connect(0);
      once->send(posted(of_x, round % 4 == 0 ? "" : "Connection: close\r\n"));
      CHECK(chorus::testing::status_of(once->read_answer(20s)) == 200);
    } else {
      kept->send(posted(of_x));
      CHECK(chorus::testing::status_of(kept->read_answer(20s)) == 200);
    }
    other.join();
  }
  CHECK(two.value(0) == sum);
}

TEST_CASE("a client that cancels a call and names its position goes on") {
  TwoMembers two;
  two.put(0, 1);
  two.put(1, 10);
  auto first = two.connect(0);
  first->send(posted(of_x));
  two.await_call(0, 0);
  first.reset();
  REQUIRE(two.group.at(1).post(all_reduce_path, of_x).status == 200);
  auto const answers = at_once(2, [&](std::size_t rank) {
    return two.group.at(rank).post(all_reduce_path, rank == 0 ? R"({"sequence":1,"tensor":"x"})" : of_x);
  });
  for (auto const& answer : answers) CHECK(answer.status == 200);
  CHECK(two.value(0) == 22);
  // From then on also without a position.
  for (auto const& answer : two.group.all_reduce(of_x)) CHECK(answer.status == 200);
}

TEST_CASE("a client that cancels a call that fails, or has not sent all of it, has called nothing") {
  TwoMembers two;
  two.put(0, 1);
  two.put(1, 10);
  auto part = two.connect(0);
  part->send(posted(of_x).substr(0, posted(of_x).size() - 1));
  part.reset();
  CHECK(two.next(0) == 0);
  auto first = two.connect(0);
  first->send(posted(of_x));
  two.await_call(0, 0);
  first.reset();
  two.group.assign(2);
  two.await_end(0);  // before that it might have succeeded
  for (auto const& answer : two.group.all_reduce(of_x)) {
    INFO(answer.body);
    CHECK(answer.status == 200);
  }
  CHECK(two.value(0) == 11);
}

TEST_CASE("a lost answer is not forgotten with its epoch, and reported once") {
  TwoMembers two;
  two.put(0, 1);
  two.put(1, 10);
  auto first = two.connect(0);
  first->send(posted(of_x));
  two.await_call(0, 0);
  first.reset();
  REQUIRE(two.group.at(1).post(all_reduce_path, of_x).status == 200);
  two.group.assign(2);
  auto const again = two.group.at(0).post(all_reduce_path, of_x);
  INFO(again.body);
  CHECK(again.code() == "group_broken");
  CHECK(mentions(again.body, "call 0 of epoch 1"));
  two.group.assign(3);
  for (auto const& answer : two.group.all_reduce(of_x)) CHECK(answer.status == 200);
}

TEST_CASE("a key: the same call again has the answer of the first, while it runs and after, and runs nothing") {
  TwoMembers two;
  two.put(0, 1);
  two.put(1, 10);
  Answer answers[3];
  std::thread first([&] { answers[0] = two.group.at(0).post(all_reduce_path, of_x, under_key("a")); });
  two.await_call(0, 0);
  std::thread second([&] { answers[1] = two.group.at(0).post(all_reduce_path, of_x, under_key("a")); });
  REQUIRE(two.group.at(1).post(all_reduce_path, of_x).status == 200);
  first.join();
  second.join();
  answers[2] = two.group.at(0).post(all_reduce_path, of_x, under_key("a"));
  for (auto const& answer : answers) {
    INFO(answer.body);
    CHECK(answer.status == 200);
    CHECK(answer.body == answers[0].body);
  }
  CHECK(answers[0].json().at("sequence") == 0);
  CHECK(answers[0].json().at("next_sequence") == 1);
  CHECK(two.value(0) == 11);
  CHECK(two.next(0) == 1);

  CHECK(two.group.at(0).post(all_reduce_path, R"({"tensor":"x","reduce":"max"})", under_key("a")).code() ==
        "idempotency_reused");
  CHECK(two.group.at(0).post("/v1/groups/g/barrier", "{}", under_key("a")).code() == "idempotency_reused");
  CHECK(two.group.at(0).post(all_reduce_path, of_x, {{"Idempotency-Key", ""}}).code() == "bad_request");
}

TEST_CASE("a key whose client has gone is asked for again, and gets the sum of its step") {
  TwoMembers two;
  two.put(0, 1);
  two.put(1, 10);
  auto first = two.connect(0);
  first->send(posted(of_x, "Idempotency-Key: step-0\r\n"));
  two.await_call(0, 0);
  first.reset();
  REQUIRE(two.group.at(1).post(all_reduce_path, of_x).status == 200);
  CHECK(two.group.at(0).post(all_reduce_path, of_x, under_key("step-0")).json().at("sequence") == 0);
  CHECK(two.value(0) == 11);
  two.put(0, 2);
  two.put(1, 20);
  auto const next =
      at_once(2, [&](std::size_t rank) { return two.group.at(rank).post(all_reduce_path, of_x, under_key("step-1")); });
  for (auto const& answer : next) CHECK(answer.json().at("sequence") == 1);
  CHECK(two.value(0) == 22);
  CHECK(two.value(1) == 22);
}

TEST_CASE("repetitions whose clients have gone end before the call does, and the call runs on") {
  TwoMembers two;
  two.put(0, 1);
  two.put(1, 10);
  std::vector<std::unique_ptr<RawConnection>> clients;
  for (int i = 0; i < 10; ++i) {
    clients.push_back(two.connect(0));
    clients.back()->send(posted(of_x, "Idempotency-Key: step-0\r\n"));
    two.await_call(0, 0);
  }
  auto const are_under_way = [&two](std::string const& requests) {
    return mentions(two.group.at(0).metrics(), "\nchorus_http_requests_in_flight " + requests + "\n");
  };
  while (!are_under_way("11")) std::this_thread::yield();  // with that for the metrics
  clients.clear();
  auto const until = std::chrono::steady_clock::now() + 20s;
  while (!are_under_way("2") && std::chrono::steady_clock::now() < until) std::this_thread::yield();
  CHECK(are_under_way("2"));
  REQUIRE(two.group.at(1).post(all_reduce_path, of_x).status == 200);
  CHECK(two.group.at(0).post(all_reduce_path, of_x, under_key("step-0")).json().at("sequence") == 0);
  CHECK(two.value(0) == 11);
}

TEST_CASE("a sequence: the same again has the answer of the first, another than the next is refused by name") {
  TwoMembers two;
  two.put(0, 1);
  two.put(1, 10);
  auto& worker = two.group.at(0);
  auto const early = worker.post(all_reduce_path, R"({"sequence":1,"tensor":"x"})");
  INFO(early.body);
  CHECK(early.code() == "out_of_order");
  CHECK(early.json().at("errors").at(0).at("pointer") == "/sequence");
  CHECK(early.json().at("errors").at(0).at("detail") == "0");
  auto const first = R"({"sequence":0,"epoch":1,"tensor":"x"})";
  for (auto const& answer : two.group.all_reduce(first)) CHECK(answer.status == 200);
  CHECK(worker.post(all_reduce_path, first).json().at("sequence") == 0);
  CHECK(two.value(0) == 11);
  // Another call under a used sequence.
  CHECK(worker.post(all_reduce_path, R"({"sequence":0,"epoch":1,"tensor":"x","reduce":"max"})").code() ==
        "out_of_order");
  CHECK(worker.post(all_reduce_path, first, under_key("other")).code() == "out_of_order");
  CHECK(worker.post(all_reduce_path, R"({"sequence":18446744073709551615,"tensor":"x"})").code() == "out_of_order");
  CHECK(worker.post(all_reduce_path, R"({"sequence":-1,"tensor":"x"})").code() == "invalid_field");
  CHECK(worker.post(all_reduce_path, R"({"epoch":2,"tensor":"x"})").code() == "epoch_fenced");
  for (auto const& answer : two.group.all_reduce(R"({"sequence":1,"tensor":"x"})")) CHECK(answer.status == 200);
}

TEST_CASE("a repetition that comes under the next epoch has its old answer, or is fenced, and is not a call of it") {
  TwoMembers two;
  two.put(0, 1);
  two.put(1, 10);
  auto const first = R"({"sequence":0,"epoch":1,"tensor":"x"})";
  for (auto const& answer : two.group.all_reduce(first)) REQUIRE(answer.status == 200);
  two.group.assign(2);
  auto const again = two.group.at(0).post(all_reduce_path, first);
  CHECK(again.status == 200);
  CHECK(again.json().at("epoch") == 1);
  auto const unknown = two.group.at(0).post(all_reduce_path, R"({"sequence":0,"epoch":1,"tensor":"x","reduce":"max"})");
  CHECK(unknown.code() == "epoch_fenced");
  CHECK(unknown.json().at("errors").at(0).at("detail") == "2");
  CHECK(two.next(0) == 0);
  // Also when this worker is no member any more.
  two.group.assign(3, [](auto& m) { m.group.members[0].incarnation = "0000000000000099"; });
  CHECK(two.group.at(0).post(all_reduce_path, first).status == 200);
}

TEST_CASE("a failed call keeps its answer under its key, and one that was refused before it began does not") {
  TwoMembers two;
  two.put(0, 1);
  auto& worker = two.group.at(0);
  CHECK(worker.post(all_reduce_path, R"({"tensor":"y"})", under_key("a")).code() == "unknown_tensor");
  auto const failed = worker.post(all_reduce_path, R"({"tensor":"x","timeout_ms":200})", under_key("a"));
  CHECK(failed.code() == "deadline_exceeded");
  two.group.assign(2);
  auto const again = worker.post(all_reduce_path, R"({"tensor":"x","timeout_ms":200})", under_key("a"));
  CHECK(again.code() == "deadline_exceeded");
  CHECK(two.next(0) == 0);
}

TEST_CASE("the last calls are known by their keys, older ones are not, and their numbers are used up") {
  LiveGroup group(1);
  group.assign(1);
  auto& worker = group.at(0);
  constexpr int beyond = service::GroupRegistry::calls_kept + 1;
  auto const numbered = [](int n) { return R"({"sequence":)" + std::to_string(n) + "}"; };
  for (int n = 0; n < beyond; ++n)
    REQUIRE(worker.post("/v1/groups/g/barrier", numbered(n), under_key(std::to_string(n))).status == 200);
  CHECK(worker.post("/v1/groups/g/barrier", numbered(1), under_key("1")).json().at("sequence") == 1);
  CHECK(worker.post("/v1/groups/g/barrier", numbered(0), under_key("0")).code() == "out_of_order");
}

TEST_CASE("several clients of one member, each with its keys: every call runs once, however often it is repeated") {
  TwoMembers two;
  two.put(0, 1);
  two.put(1, 1);
  // Four calls, each sent three times concurrently at both members.
  auto const answers = at_once(24, [&](std::size_t i) {
    return two.group.at(i % 2).post(all_reduce_path, of_x, under_key(std::to_string(i / 2 % 4)));
  });
  for (auto const& answer : answers) {
    INFO(answer.body);
    CHECK(answer.status == 200);
  }
  CHECK(two.value(0) == 16);
  CHECK(two.value(1) == 16);
  CHECK(two.next(0) == 4);
}

TEST_CASE("unnamed calls: open, answered and lost ones, each reported once") {
  struct Ear final : http::Reception {
    State now = State::open;
    State state() override { return now; }
  };
  service::UnnamedCalls calls;
  auto const first = std::make_shared<Ear>(), second = std::make_shared<Ear>();
  calls.begun({1, 0}, "barrier", first);
  calls.begun({1, 1}, "barrier", second);
  CHECK_FALSE(calls.lost({1, 2}));
  second->now = http::Reception::State::broken;
  CHECK_FALSE(calls.lost({1, 1}));
  calls.succeeded({1, 1});
  CHECK(mentions(calls.lost({1, 2}).value(), "call 1 of epoch 1 (barrier) has succeeded"));
  CHECK_FALSE(calls.lost({1, 2}));
  first->now = http::Reception::State::broken;
  calls.failed({1, 0});
  CHECK_FALSE(calls.lost({2, 0}));
}
