// Many tensors in one call: `tensors` in place of `tensor`.
#include <doctest/doctest.h>

#include <set>

#include "worker/service/testing/live_group.hpp"

using namespace chorus;
using namespace chorus::service::testing;

namespace {

std::string name_of(std::size_t index) { return "layer" + std::to_string(index); }

std::string list_of(std::size_t count) {
  std::string list = R"({"tensors":[)";
  for (std::size_t i = 0; i < count; ++i) list += (i == 0 ? "\"" : ",\"") + name_of(i) + '"';
  return list + "]";
}

// Tensor i has i elements: the first one is empty.
std::vector<float> values(std::size_t rank, std::size_t index) {
  return std::vector<float>(index, static_cast<float>((rank + 1) * 1000 + index));
}

void put_all(LiveGroup& group, std::size_t count) {
  for (std::size_t rank = 0; rank < group.ranks(); ++rank)
    for (std::size_t i = 0; i < count; ++i)
      REQUIRE(group.at(rank).put_tensor(name_of(i), "f32", values(rank, i)).status / 100 == 2);
}

void all_succeed(std::vector<Answer> const& answers) {
  for (auto const& answer : answers) {
    INFO(answer.body);
    CHECK(answer.status == 200);
  }
}

// Checks the first call of a group, on tensors of version 1: expected(i) is the new value of tensor i on all ranks.
template <class Expected>
void all_moved_on(LiveGroup& group, std::vector<Answer> const& reports, std::size_t count, Expected expected) {
  all_succeed(reports);
  CHECK(reports[0].json().at("tensors") == count);
  CHECK(reports[0].json().at("version") == 2 * count);
  CHECK(reports[0].json().at("sequence") == 0);
  for (std::size_t rank = 0; rank < group.ranks(); ++rank)
    for (std::size_t i = 0; i < count; ++i) {
      CHECK(group.at(rank).get_tensor<float>(name_of(i)) == expected(i));
      CHECK(group.at(rank).version_of(name_of(i)) == 2);
    }
}

}  // namespace

TEST_CASE("a list of tensors is reduced in one call, each at its place") {
  LiveGroup group(2);
  group.assign(1);
  put_all(group, 50);
  all_moved_on(group, group.all_reduce(list_of(50) + "}"), 50,
               [](std::size_t i) { return std::vector<float>(i, static_cast<float>(3000 + 2 * i)); });
  auto const flight = group.at(0).get("/v1/flight").json();
  CHECK(flight.at("items").at(0).at("tensor") == "layer0 and 49 more");
}

TEST_CASE("avg, reduce and broadcast of a list") {
  LiveGroup group(2);
  group.assign(1);
  put_all(group, 4);
  all_succeed(group.all_reduce(list_of(4) + R"(,"reduce":"avg"})"));
  CHECK(group.at(1).get_tensor<float>(name_of(3)) == std::vector<float>(3, 1503));
  put_all(group, 4);
  auto const before = group.at(0).version_of(name_of(3));
  all_succeed(group.call("reduce", list_of(4) + R"(,"root":1})"));
  CHECK(group.at(1).get_tensor<float>(name_of(3)) == std::vector<float>(3, 3006));
  CHECK(group.at(0).get_tensor<float>(name_of(3)) == values(0, 3));
  CHECK(group.at(0).version_of(name_of(3)) == before);
  all_succeed(group.call("broadcast", list_of(4) + R"(,"root":1})"));
  CHECK(group.at(0).get_tensor<float>(name_of(3)) == std::vector<float>(3, 3006));
  CHECK(group.at(0).get_tensor<float>(name_of(1)) == std::vector<float>(1, 3002));
}

TEST_CASE("all_gather, reduce_scatter and all_to_all of a list leave what they leave of each tensor alone") {
  LiveGroup group(2);
  group.assign(1);
  // Tensor i has 2 i rows; row r of rank k is 1000 (k + 1) + 10 i + r.
  constexpr std::size_t count = 5;
  auto const value = [](std::size_t rank, std::size_t i, std::size_t row) {
    return static_cast<float>(1000 * (rank + 1) + 10 * i + row);
  };
  auto const put = [&](std::size_t more = 0) {
    for (std::size_t rank = 0; rank < 2; ++rank)
      for (std::size_t i = 0; i < count; ++i) {
        std::vector<float> rows;
        for (std::size_t row = 0; row < 2 * i + more; ++row) rows.push_back(value(rank, i, row));
        REQUIRE(group.at(rank).put_tensor(name_of(i), "f32", rows).status / 100 == 2);
      }
  };
  auto const holds = [&](std::size_t rank, std::size_t i, std::vector<float> const& expected) {
    CAPTURE(rank);
    CAPTURE(i);
    CHECK(group.at(rank).get_tensor<float>(name_of(i)) == expected);
  };
  put();
  all_succeed(group.call("all_gather", list_of(count) + "}"));
  for (std::size_t rank = 0; rank < 2; ++rank)
    for (std::size_t i = 0; i < count; ++i) {
      std::vector<float> whole;
      for (std::size_t from = 0; from < 2; ++from)
        for (std::size_t row = 0; row < 2 * i; ++row) whole.push_back(value(from, i, row));
      holds(rank, i, whole);
    }
  put();
  all_succeed(group.call("reduce_scatter", list_of(count) + "}"));
  for (std::size_t rank = 0; rank < 2; ++rank)
    for (std::size_t i = 0; i < count; ++i) {
      std::vector<float> own;
      for (std::size_t row = rank * i; row < (rank + 1) * i; ++row) own.push_back(value(0, i, row) + value(1, i, row));
      holds(rank, i, own);
    }
  put();
  all_succeed(group.call("all_to_all", list_of(count) + "}"));
  for (std::size_t rank = 0; rank < 2; ++rank)
    for (std::size_t i = 0; i < count; ++i) {
      std::vector<float> exchanged;
      for (std::size_t from = 0; from < 2; ++from)
        for (std::size_t row = rank * i; row < (rank + 1) * i; ++row) exchanged.push_back(value(from, i, row));
      holds(rank, i, exchanged);
    }

  put(1);  // odd numbers of rows
  auto const refused = group.call("reduce_scatter", list_of(count) + "}");
  for (auto const& answer : refused) {
    CHECK(answer.status == 422);
    CHECK(answer.body.find("has 1 rows, which 2 ranks cannot divide evenly") != std::string::npos);
  }
  for (auto const& answer : group.call("all_gather", list_of(count) + R"(,"counts":[1,1]})"))
    CHECK(answer.body.find("is for one tensor, not for a list") != std::string::npos);
  all_succeed(group.call("all_gather", list_of(count) + "}"));
  CHECK(group.at(1).get_tensor<float>(name_of(0)) == std::vector<float>{value(0, 0, 0), value(1, 0, 0)});
}

TEST_CASE("large and many: a list of one, of nothing but empty tensors, of more than a helper's share") {
  LiveGroup group(2);
  group.assign(1);
  put_all(group, 1);
  all_succeed(group.all_reduce(list_of(1) + "}"));
  CHECK(group.at(0).version_of(name_of(0)) == 2);
  for (std::size_t rank = 0; rank < 2; ++rank)
    for (std::size_t i = 0; i < 3; ++i)
      group.at(rank).put_tensor(name_of(i), "f32", std::vector<float>(300000 + i, static_cast<float>(i + 1)));
  all_succeed(group.all_reduce(list_of(3) + "}"));
  for (std::size_t i = 0; i < 3; ++i)
    CHECK(group.at(1).get_tensor<float>(name_of(i)) == std::vector<float>(300000 + i, static_cast<float>(2 * (i + 1))));
}

TEST_CASE("a long list travels in portions, large tensors by themselves, and all move on together") {
  LiveGroup group(2);
  group.assign(1);
  constexpr std::size_t large = (5 << 20) / sizeof(float), small = (3 << 20) / sizeof(float);
  auto const elements_of = [](std::size_t i) { return i == 3 ? std::size_t{0} : i % 4 == 1 ? large + i : small + i; };
  auto const put = [&](std::size_t rank) {
    for (std::size_t i = 0; i < 10; ++i)
      REQUIRE(group.at(rank)
                  .put_tensor(name_of(i), "f32", std::vector<float>(elements_of(i), static_cast<float>(rank + i)))
                  .status == 201);
  };
  put(0);
  put(1);
  all_moved_on(group, group.all_reduce(list_of(10) + "}"), 10,
               [&](std::size_t i) { return std::vector<float>(elements_of(i), static_cast<float>(2 * i + 1)); });
  // Two tensors of 3 MiB fit into 8 MiB, and the empty one travels with the first portion.
  auto const flights = group.at(0).get("/v1/flight").json().at("items").as_array();
  std::set<std::string> moved;
  for (auto const& flight : flights) moved.insert(std::string(flight.at("tensor").as_string()));
  CHECK(moved == std::set<std::string>{"layer0 and 2 more", "layer1", "layer4 and 1 more", "layer5",
                                       "layer7 and 1 more", "layer9"});

  all_succeed(group.call("reduce", list_of(10) + R"(,"root":1,"reduce":"avg"})"));
  CHECK(group.at(1).get_tensor<float>(name_of(9)) == std::vector<float>(elements_of(9), 19));
  CHECK(group.at(0).version_of(name_of(9)) == 2);
}

TEST_CASE("lists that differ only in a later portion are refused by the first one, and nothing is changed") {
  LiveGroup group(2);
  group.assign(1);
  for (std::size_t rank = 0; rank < 2; ++rank) {
    group.at(rank).put_tensor("a", "f32", std::vector<float>(5 << 18, 1));
    group.at(rank).put_tensor("b", "f32", std::vector<float>((5 << 18) + rank, 1));
  }
  for (auto const& answer : group.all_reduce(R"({"tensors":["a","b"]})")) {
    INFO(answer.body);
    CHECK(answer.code() == "plan_mismatch");
  }
  for (std::size_t rank = 0; rank < 2; ++rank) CHECK(group.at(rank).version_of("a") == 1);
}

TEST_CASE("ten thousand names") {
  LiveGroup group(1);
  group.assign(1);
  std::string list = R"({"tensors":[)";
  for (int i = 0; i < 10001; ++i) list += (i == 0 ? "\"t" : ",\"t") + std::to_string(i) + '"';
  auto const answer = group.at(0).post("/v1/groups/g/all_reduce", list + "]}");
  CHECK(answer.code() == "invalid_field");
  CHECK(answer.json().at("errors").at(0).at("pointer") == "/tensors");
  CHECK(answer.body.find("10000") != std::string::npos);
}

TEST_CASE("impossible lists are refused with the place, before a number is drawn") {
  LiveGroup group(2);
  group.assign(1);
  put_all(group, 4);
  group.at(0).put_tensor("other", "i32", std::vector<std::int32_t>(3));
  auto const refused = [&](std::string const& op, std::string const& body, std::string const& pointer) {
    auto const answer = group.at(0).post("/v1/groups/g/" + op, body);
    INFO(body, " -> ", answer.body);
    REQUIRE(answer.json().as_object().contains("errors"));
    CHECK(answer.json().at("errors").at(0).at("pointer").as_string() == pointer);
  };
  refused("all_reduce", R"({"tensors":["layer1","layer2","layer1"]})", "/tensors/2");
  refused("all_reduce", R"({"tensors":["layer1","nobody"]})", "/tensors/1");
  refused("all_reduce", R"({"tensors":["layer1","other"]})", "/tensors/1");
  refused("all_reduce", R"({"tensors":["layer1","a b"]})", "/tensors/1");
  refused("all_reduce", R"({"tensors":["layer1"],"tensor":"layer2"})", "/tensors");
  refused("all_reduce", R"({"tensors":["layer1"],"output":"y"})", "/output");
  refused("all_reduce", R"({"tensors":["layer1"],"in_place":true})", "/in_place");
  refused("gather", R"({"tensors":["layer1"]})", "/tensors");
  refused("barrier", R"({"tensors":["layer1"]})", "/tensors");
  for (auto const& answer : group.all_reduce(list_of(4) + "}")) CHECK(answer.json().at("sequence") == 0);
}

TEST_CASE("the same sizes in another order are refused, and nothing is changed") {
  LiveGroup group(2);
  group.assign(1);
  for (std::size_t rank = 0; rank < 2; ++rank)
    for (auto const* name : {"a", "b"}) group.at(rank).put_tensor(name, "f32", std::vector<float>(8, 1));
  for (auto const& answer : group.call("all_reduce", [](std::size_t rank) {
         return std::string(rank == 0 ? R"({"tensors":["a","b"]})" : R"({"tensors":["b","a"]})");
       })) {
    INFO(answer.body);
    CHECK(answer.code() == "plan_mismatch");
    CHECK(answer.body.find("a first") != std::string::npos);
    CHECK(answer.body.find("b first") != std::string::npos);
  }
  CHECK(group.at(0).version_of("a") == 1);
  CHECK(group.at(1).get_tensor<float>("b") == std::vector<float>(8, 1));
}
