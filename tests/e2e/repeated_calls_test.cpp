// A members' call whose client loses the answer, and its repetition: after a timeout, behind a proxy that cuts, on a
// connection that is reset. Two members hold 1 and 10, then 2 and 20, and no sum of both steps may occur.
#include <doctest/doctest.h>

#include <array>
#include <thread>

#include "tests/support/faults/fault_proxy.hpp"
#include "tests/support/fleets/cluster.hpp"
#include "tests/support/mentions.hpp"
#include "tests/support/raw_http.hpp"

using namespace chorus::testing;
using namespace std::chrono_literals;

namespace {

constexpr auto all_reduce = "/v1/groups/g/all_reduce";
using Values = std::vector<float>;

enum class Loss { read_timeout, cut_by_proxy, reset_when_kept };
constexpr std::array losses{Loss::read_timeout, Loss::cut_by_proxy, Loss::reset_when_kept};

// How the client identifies its call, if at all.
struct Naming {
  std::string body;
  std::string key;
};
Naming const nameless{R"({"tensor":"x"})", ""};
Naming const by_key{R"({"tensor":"x"})", "step-0"};
Naming const by_sequence{R"({"tensor":"x","epoch":1,"sequence":0})", ""};

httplib::Headers headers_of(Naming const& naming) {
  if (naming.key.empty()) return {};
  return {{"Idempotency-Key", naming.key}};
}

struct Steps {
  Steps() { cluster.make_group("g"); }

  Service& first() { return cluster.at_rank("g", 0); }
  Service& second() { return cluster.at_rank("g", 1); }

  void put(float at_first, float at_second) {
    REQUIRE(first().put_tensor("x", "f32", Values{at_first}).status / 100 == 2);
    REQUIRE(second().put_tensor("x", "f32", Values{at_second}).status / 100 == 2);
  }
  // A member may commit after the other one has its answer.
  void check(float at_first, float at_second) {
    CHECK(eventually([&] { return first().get_tensor<float>("x") == Values{at_first}; }));
    CHECK(eventually([&] { return second().get_tensor<float>("x") == Values{at_second}; }));
  }
  bool has_begun() { return first().get("/v1/groups/g").json().at("next_sequence") == 1; }

  // Makes the first member's client call and lose the answer. Returns when the client has gone.
  void call_and_lose(Loss loss, Naming const& naming) {
    auto const body = naming.body;
    std::string const fields = naming.key.empty() ? "" : "Idempotency-Key: " + naming.key + "\r\n";
    auto const request = "POST " + std::string(all_reduce) + " HTTP/1.1\r\nHost: localhost\r\n" + fields +
                         "Content-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) +
                         "\r\n\r\n" + body;
    if (loss == Loss::read_timeout) {
      httplib::Client client("127.0.0.1", first().port());
      client.set_read_timeout(500ms);
      CHECK_FALSE(client.Post(all_reduce, headers_of(naming), body, "application/json"));
    } else if (loss == Loss::cut_by_proxy) {
      FaultProxy proxy(1);
      proxy.forward_to(first().port());
      RawConnection client(proxy.port());
      client.send(request);
      REQUIRE(eventually([&] { return has_begun(); }));
      proxy.suffer(Harm::cut);
      CHECK(client.read_to_end(10s).empty());
    } else {
      RawConnection client(first().port());
      client.send("GET /v1 HTTP/1.1\r\nHost: localhost\r\n\r\n");
      CHECK(status_of(client.read_answer(10s)) == 200);
      client.send(request);
      REQUIRE(eventually([&] { return has_begun(); }));
      client.reset();
    }
    REQUIRE(eventually([&] { return has_begun(); }));
  }

  Answer call(Service const& member, std::string const& body = nameless.body, httplib::Headers headers = {}) {
    return member.post(all_reduce, body, std::move(headers));
  }
  std::vector<Answer> call_both() {
    std::vector<Answer> answers(2);
    std::thread other([&] { answers[1] = call(second()); });
    answers[0] = call(first());
    other.join();
    return answers;
  }

  Cluster cluster{2};
};

}  // namespace

TEST_CASE(
    "a call that is repeated without a key fails with group_broken and the reason, and no member gets a wrong sum") {
  for (auto const loss : losses) {
    INFO("loss ", static_cast<int>(loss));
    Steps steps;
    steps.put(1, 10);
    steps.call_and_lose(loss, nameless);
    auto const again = steps.call(steps.first());
    INFO(again.body);
    CHECK(again.code() == "group_broken");
    CHECK(mentions(again.body, "its client has gone"));
    auto const other = steps.call(steps.second());
    INFO(other.body);
    // The other member fails with the reason, or already had all data for the sum of this step.
    bool const has_sum = other.status == 200;
    if (!has_sum) CHECK(other.status == 409);
    if (!has_sum) CHECK(mentions(other.body, "its client has gone"));
    steps.check(1, has_sum ? 11 : 10);
    CHECK(steps.call(steps.second()).status == 409);

    // All members agree on their position, and go on.
    steps.put(1, 10);
    steps.cluster.make_group("g");
    for (auto const& answer : steps.call_both()) CHECK(answer.status == 200);
    steps.check(11, 11);
  }
}

TEST_CASE("a call that is repeated under its key or its sequence gets the sum of its step") {
  for (auto const loss : losses)
    for (auto const& naming : {by_key, by_sequence}) {
      INFO("loss ", static_cast<int>(loss), " ", naming.body, naming.key);
      Steps steps;
      steps.put(1, 10);
      steps.call_and_lose(loss, naming);
      Answer again;
      std::thread client([&] { again = steps.call(steps.first(), naming.body, headers_of(naming)); });
      auto const other = steps.call(steps.second());
      client.join();
      INFO(again.body, other.body);
      CHECK(other.status == 200);
      REQUIRE(again.status == 200);
      CHECK(again.json().at("sequence") == 0);
      CHECK(again.json().at("next_sequence") == 1);
      steps.check(11, 11);
      // A later repetition gets the same answer, and the next step is the next call.
      CHECK(steps.call(steps.first(), naming.body, headers_of(naming)).body == again.body);
      steps.put(2, 20);
      for (auto const& answer : steps.call_both()) CHECK(answer.status == 200);
      steps.check(22, 22);
    }
}

TEST_CASE("a call that succeeds after its client has gone gives 11, and the next one without a key never 31") {
  for (auto const loss : losses) {
    INFO("loss ", static_cast<int>(loss));
    Steps steps;
    steps.put(1, 10);
    steps.call_and_lose(loss, nameless);
    CHECK(steps.call(steps.second()).status == 200);
    steps.check(11, 11);
    REQUIRE(steps.second().put_tensor("x", "f32", Values{20}).status / 100 == 2);
    Answer waiting;
    std::thread other([&] { waiting = steps.call(steps.second()); });
    auto const again = steps.call(steps.first());
    other.join();
    INFO(again.body, waiting.body);
    CHECK(again.code() == "group_broken");
    CHECK(mentions(again.body, "has succeeded, but its client had gone before it was told"));
    CHECK(waiting.status == 409);
    steps.check(11, 20);
  }
}
