// A connection that repeats a request, as training loops do, gets the current values each time; and repeated pushes
// count once.
#include <doctest/doctest.h>

#include "tests/support/fleets/parameters.hpp"
#include "tests/support/raw_http.hpp"

using namespace chorus::testing;

namespace {

using Floats = std::vector<float>;
constexpr std::chrono::seconds patience{10};

struct Values {
  Values() : cluster(1) {
    cluster.make_group("g");
    REQUIRE(cluster.coordinator.put("/v1/parameters/w", R"({"group":"g","shape":[2]})").status == 201);
  }
  void push() { REQUIRE(client.push("w", ParameterClient::bytes(Floats{1, 2})).status == 200); }
  Cluster cluster;
  ParameterClient client{cluster.worker(0).url, "c"};
};

std::string request(std::string const& more = "") {
  return "GET /v1/parameters/w/value HTTP/1.1\r\nHost: localhost\r\n" + more + "\r\n";
}

Floats values_of(std::string const& answer) {
  return ParameterClient::values<float>(answer.substr(answer.find("\r\n\r\n") + 4));
}

bool has(std::string const& answer, std::string const& field) { return answer.find(field) != std::string::npos; }

}  // namespace

TEST_CASE("each of many pulls on one connection gets the present values and tag") {
  Values w;
  RawConnection connection(w.cluster.worker(0).port());
  for (int pushes = 0; pushes < 5; ++pushes) {
    for (int i = 0; i < 4; ++i) {
      connection.send(request());
      auto const answer = connection.read_answer(patience);
      CHECK(values_of(answer) == Floats{1.0F * static_cast<float>(pushes), 2.0F * static_cast<float>(pushes)});
      CHECK(has(answer, "ETag: \"1." + std::to_string(pushes) + "\"\r\n"));
      CHECK(has(answer, "Parameter-Version: " + std::to_string(pushes) + "\r\n"));
    }
    w.push();
  }
  CHECK(w.cluster.worker(0).metric("chorus_parameter_pulls_total{result=\"sent\"") == 20);
}

TEST_CASE("pulls that arrive together, in pieces and among other requests are answered in order") {
  Values w;
  w.push();
  RawConnection connection(w.cluster.worker(0).port());
  auto const other = request("Range: bytes=4-7\r\n");
  std::string all;
  for (int i = 0; i < 30; ++i) all += request() + request() + request() + other;
  for (std::size_t at = 0; at < all.size(); at += 777) connection.send(std::string_view(all).substr(at, 777));
  for (int i = 0; i < 30; ++i) {
    for (int k = 0; k < 3; ++k) CHECK(values_of(connection.read_answer(patience)) == Floats{1, 2});
    CHECK(values_of(connection.read_answer(patience)) == Floats{2});
  }
}

TEST_CASE("an unchanged value is answered with 304 each time, until it changes") {
  Values w;
  RawConnection connection(w.cluster.worker(0).port());
  for (int i = 0; i < 4; ++i) {
    connection.send(request("If-None-Match: \"1.0\"\r\n"));
    CHECK(status_of(connection.read_answer(patience)) == 304);
  }
  w.push();
  connection.send(request("If-None-Match: \"1.0\"\r\n"));
  CHECK(values_of(connection.read_answer(patience)) == Floats{1, 2});
}

TEST_CASE("a deleted parameter is not answered from a cache, and its successor is a new parameter") {
  Values w;
  RawConnection connection(w.cluster.worker(0).port());
  auto const status = [&] {
    connection.send(request());
    return status_of(connection.read_answer(patience));
  };
  for (int i = 0; i < 4; ++i) CHECK(status() == 200);
  REQUIRE(w.cluster.coordinator.erase("/v1/parameters/w").status == 204);
  CHECK(eventually([&] { return status() == 404; }));
  REQUIRE(w.cluster.coordinator.put("/v1/parameters/w", R"({"group":"g","shape":[1]})").status == 201);
  connection.send(request());
  CHECK(values_of(connection.read_answer(patience)) == Floats{0});
}

TEST_CASE("a repeated push_pull or push of rows counts once, and push_pull answers with the present values") {
  Values w;
  REQUIRE(w.cluster.coordinator.put("/v1/parameters/rows", R"({"group":"g","shape":[3,2]})").status == 201);
  httplib::Headers const first{{"Chorus-Client", "p"}, {"Chorus-Sequence", "0"}};
  auto const push_pull = [&] {
    auto const answer = w.client.post("/v1/parameters/w/push_pull", ParameterClient::bytes(Floats{10, 20}), first);
    CHECK(answer.status == 200);
    return ParameterClient::values<float>(answer.body);
  };
  CHECK(push_pull() == Floats{10, 20});
  w.push();
  for (int i = 0; i < 3; ++i) CHECK(push_pull() == Floats{11, 22});

  auto const body =
      ParameterClient::bytes(std::vector<std::uint64_t>{0, 2, 2}) + ParameterClient::bytes(Floats{1, 2, 3, 4, 5, 6});
  auto named = first;
  named.emplace("Chorus-Rows", "3");
  for (int i = 0; i < 3; ++i) {
    auto const answer = w.client.post("/v1/parameters/rows/rows/gradient", body, named);
    CHECK(answer.status == 200);
    CHECK(answer.json().at("duplicate") == (i > 0));
  }
  CHECK(ParameterClient::values<float>(w.client.pull("rows").body) == Floats{1, 2, 0, 0, 8, 10});
}
