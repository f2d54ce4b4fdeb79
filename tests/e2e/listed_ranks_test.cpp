// A group whose ranks are as listed, with a list that alternates between two racks: every operation gives each rank its
// own result, by every algorithm.
#include <doctest/doctest.h>

#include <set>

#include "tests/support/fleets/cluster.hpp"

using namespace chorus::testing;
namespace json = boost::json;
using Values = std::vector<std::int64_t>;

namespace {

constexpr std::size_t block = 3;  // elements of a rank's block

class ListedGroup {
 public:
  ListedGroup() : cluster(ids.size(), {"rack=a,host=h0", "rack=b,host=h1", "rack=a,host=h2", "rack=b,host=h3"}) {
    auto const made = cluster.coordinator.put("/v1/groups/g", R"({"workers":["w3","w0","w2","w1"],"order":"listed"})");
    REQUIRE_MESSAGE(made.status == 201, made.body);
    group = made.json();
  }
  [[nodiscard]] std::size_t ranks() const { return ids.size(); }
  Service& at(std::size_t rank) { return cluster.worker(static_cast<std::size_t>(ids.at(rank).back() - '0')); }

  // Returns the input of a rank: `elements` values that no other rank has.
  [[nodiscard]] static Values input(std::size_t rank, std::size_t elements) {
    Values values(elements);
    for (std::size_t i = 0; i < elements; ++i) values[i] = static_cast<std::int64_t>(1000 * (rank + 1) + i);
    return values;
  }
  void put(std::size_t elements) {
    for (std::size_t rank = 0; rank < ranks(); ++rank)
      REQUIRE(at(rank).put_tensor("x", "i64", input(rank, elements)).status / 100 == 2);
  }
  void run(json::object request) {
    request["group"] = "g";
    request["tensor"] = "x";
    request["output"] = "y";
    auto const record = cluster.run(request);
    CHECK_MESSAGE(record.at("state") == "succeeded", json::serialize(record));
  }
  Values result(std::size_t rank) { return at(rank).get_tensor<std::int64_t>("y"); }

  // Returns the algorithms that a dry run over this group considers.
  std::set<std::string> algorithms(std::string const& op) {
    auto const answer = cluster.coordinator.post(
        "/v1/collectives?validate_only=true",
        json::serialize(json::object{{"group", "g"}, {"op", op}, {"tensor", "x"}, {"output", "y"}}));
    REQUIRE_MESSAGE(answer.status == 200, answer.body);
    std::set<std::string> names{"auto"};
    auto const body = answer.json();
    for (auto const& each : body.at("considered").as_array())
      names.insert(std::string(each.at("algorithm").as_string()));
    CHECK(names.size() > 2);
    return names;
  }
  Values sum(std::size_t elements) const {
    Values sum(elements);
    for (std::size_t rank = 0; rank < ranks(); ++rank)
      for (std::size_t i = 0; i < elements; ++i) sum[i] += input(rank, elements)[i];
    return sum;
  }
  [[nodiscard]] static Values part(Values const& values, std::size_t rank) {
    auto const first = values.begin() + static_cast<std::ptrdiff_t>(rank * block);
    return {first, first + static_cast<std::ptrdiff_t>(block)};
  }

  std::vector<std::string> const ids{"w3", "w0", "w2", "w1"};
  Cluster cluster;
  json::value group;
};

}  // namespace

TEST_CASE("ranks are as listed, whatever the localities, and the ring follows the racks") {
  ListedGroup listed;
  for (std::size_t rank = 0; rank < listed.ranks(); ++rank) {
    auto const& member = listed.group.at("members").at(rank);
    CHECK(member.at("rank") == rank);
    CHECK(std::string(member.at("worker").as_string()) == listed.ids[rank]);
  }
  // The racks are w0, w2 and w1, w3: ranks 1, 2 and 0, 3. A ring crosses between them twice, not four times.
  std::set<std::string> const rack_a{"w0", "w2"};
  auto const by_position = listed.group.at("by_position").as_array();
  std::size_t crossings = 0;
  for (std::size_t i = 0; i < by_position.size(); ++i) {
    auto const id_at = [&](std::size_t position) {
      return listed.ids.at(by_position.at(position % by_position.size()).to_number<std::size_t>());
    };
    if (rack_a.contains(id_at(i)) != rack_a.contains(id_at(i + 1))) ++crossings;
  }
  CHECK(crossings == 2);
}

TEST_CASE("every operation by every algorithm gives each listed rank its own result") {
  ListedGroup listed;
  auto const ranks = listed.ranks();
  auto const whole = ranks * block;
  auto const each = [&](std::string const& op, std::size_t elements, json::object const& more, auto const& check) {
    listed.put(elements);
    for (auto const& algorithm : listed.algorithms(op)) {
      CAPTURE(op);
      CAPTURE(algorithm);
      auto request = more;
      request["op"] = op;
      request["algorithm"] = algorithm;
      listed.run(std::move(request));
      for (std::size_t rank = 0; rank < ranks; ++rank) {
        CAPTURE(rank);
        check(rank);
      }
    }
  };
  Values gathered;
  for (std::size_t rank = 0; rank < ranks; ++rank)
    for (auto const value : ListedGroup::input(rank, block)) gathered.push_back(value);
  each("all_reduce", whole, {}, [&](std::size_t rank) { CHECK(listed.result(rank) == listed.sum(whole)); });
  each("reduce", whole, {{"root", 2}}, [&](std::size_t rank) {
    if (rank == 2) CHECK(listed.result(rank) == listed.sum(whole));
  });
  each("broadcast", whole, {{"root", 3}},
       [&](std::size_t rank) { CHECK(listed.result(rank) == ListedGroup::input(3, whole)); });
  each("all_gather", block, {}, [&](std::size_t rank) { CHECK(listed.result(rank) == gathered); });
  each("gather", block, {{"root", 1}}, [&](std::size_t rank) {
    if (rank == 1) CHECK(listed.result(rank) == gathered);
  });
  each("reduce_scatter", whole, {},
       [&](std::size_t rank) { CHECK(listed.result(rank) == ListedGroup::part(listed.sum(whole), rank)); });
  each("scatter", whole, {{"root", 2}},
       [&](std::size_t rank) { CHECK(listed.result(rank) == ListedGroup::part(ListedGroup::input(2, whole), rank)); });
  each("all_to_all", whole, {}, [&](std::size_t rank) {
    Values expected;
    for (std::size_t from = 0; from < ranks; ++from)
      for (auto const value : ListedGroup::part(ListedGroup::input(from, whole), rank)) expected.push_back(value);
    CHECK(listed.result(rank) == expected);
  });
}

TEST_CASE("the order `listed` needs a list of workers") {
  Cluster cluster(1);
  auto const refused = cluster.coordinator.put("/v1/groups/g", R"({"size":1,"order":"listed"})");
  CHECK(refused.status == 422);
  CHECK(refused.body.find("/order") != std::string::npos);
}
