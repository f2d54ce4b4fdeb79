// Compressed collectives over real processes: launches and members' calls, what they report, and what is refused.
#include <doctest/doctest.h>

#include <cmath>
#include <thread>

#include "tests/support/fleets/cluster.hpp"

using namespace chorus::testing;
namespace json = boost::json;
using Floats = std::vector<float>;

namespace {

constexpr std::size_t elements = 3 * 2520;

Floats vector_of(std::size_t worker) {
  Floats values;
  for (std::size_t i = 0; i < elements; ++i)
    values.push_back(static_cast<float>(worker + 1) * std::sin(static_cast<float>(i)));
  return values;
}

Floats sum_of_three() {
  auto sum = vector_of(0);
  for (auto& value : sum) value *= 6;
  return sum;
}

// The largest difference; a vector of another size is infinitely far away.
float distance(Floats const& a, Floats const& b) {
  if (a.size() != b.size()) return INFINITY;
  float largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest;
}

class Fleet {
 public:
  explicit Fleet(std::vector<std::string> localities = {}) : cluster(3, std::move(localities)) {
    cluster.make_group("g");
  }

  void put_all() {
    for (std::size_t w = 0; w < 3; ++w) cluster.worker(w).put_tensor("x", "f32", vector_of(w));
  }
  Floats at(std::size_t worker, std::string const& tensor = "x") {
    return cluster.worker(worker).get_tensor<float>(tensor);
  }
  json::value run(json::object request) {
    request["group"] = "g";
    request["tensor"] = "x";
    return cluster.run(request);
  }
  // Every member calls its own worker; bodies[w] is that of worker w, the last one also of those after it.
  std::vector<Answer> call(std::string const& op, std::vector<std::string> const& bodies) {
    std::vector<Answer> answers(3);
    std::vector<std::thread> calls;
    for (std::size_t w = 0; w < 3; ++w)
      calls.emplace_back([&, w] {
        answers[w] = cluster.worker(w).post("/v1/groups/g/" + op, bodies[std::min(w, bodies.size() - 1)]);
      });
    for (auto& each : calls) each.join();
    return answers;
  }

  Cluster cluster;
};

struct Format {
  char const* name;
  float error;  // of sums up to 6: c (2 + c) p m
  double ratio;
};
constexpr Format formats[]{{"bf16", 0.08F, 2}, {"f16", 0.01F, 2}, {"int8", 0.08F, 3.9375}, {"fp8_e4m3", 0.66F, 3.9375}};

}  // namespace

TEST_CASE("a launch with compression leaves the same bits on every rank, near the sum, and says what it saved") {
  Fleet fleet;
  for (auto const& format : formats)
    for (bool const in_place : {false, true}) {
      CAPTURE(format.name);
      fleet.put_all();
      auto const answer = fleet.run({{"op", "all_reduce"}, {"compression", format.name}, {"in_place", in_place}});
      INFO(json::serialize(answer));
      REQUIRE(answer.at("state") == "succeeded");
      CHECK(answer.at("compression_ratio").to_number<double>() == doctest::Approx(format.ratio));
      CHECK(answer.at("wire_bytes").to_number<double>() == doctest::Approx(elements * 4 / format.ratio));
      CHECK(distance(fleet.at(0), sum_of_three()) <= format.error);
      CHECK(fleet.at(0) == fleet.at(1));
      CHECK(fleet.at(0) == fleet.at(2));
      auto const& ranks = answer.at("ranks").as_array();
      CHECK(ranks[0].at("report").at("output_digest") == ranks[2].at("report").at("output_digest"));
    }
  auto const sent = [&](json::object request) {
    fleet.put_all();
    request["op"] = "all_reduce";
    request["algorithm"] = "allpairs";
    return fleet.run(request).at("ranks").as_array()[0].at("report").at("bytes_sent").to_number<double>();
  };
  CHECK(sent({}) / sent({{"compression", "int8"}}) == doctest::Approx(3.9375));
}

TEST_CASE("the other operations are compressed, too") {
  Fleet fleet;
  auto const run = [&](json::object request) {
    fleet.put_all();
    request["compression"] = "int8";
    auto const answer = fleet.run(request);
    INFO(json::serialize(answer));
    CHECK(answer.at("state") == "succeeded");
  };
  auto const part = [](Floats const& whole, std::size_t rank) {
    auto const begin = whole.begin() + static_cast<std::ptrdiff_t>(rank * elements / 3);
    return Floats(begin, begin + elements / 3);
  };
  run({{"op", "reduce"}, {"root", 1}, {"output", "y"}});
  CHECK(distance(fleet.at(1, "y"), sum_of_three()) <= 0.08F);
  run({{"op", "reduce_scatter"}, {"output", "part"}, {"reduce", "avg"}});
  auto average = sum_of_three();
  for (auto& value : average) value /= 3;
  CHECK(distance(fleet.at(2, "part"), part(average, 2)) <= 0.03F);
  run({{"op", "broadcast"}, {"root", 2}});
  CHECK(distance(fleet.at(0), vector_of(2)) <= 0.012F);
  CHECK(fleet.at(0) == fleet.at(2));
  run({{"op", "all_gather"}, {"output", "all"}});
  Floats all;
  for (std::size_t w = 0; w < 3; ++w) {
    auto const own = vector_of(w);
    all.insert(all.end(), own.begin(), own.end());
  }
  CHECK(distance(fleet.at(1, "all"), all) <= 0.012F);
  CHECK(fleet.at(1, "all") == fleet.at(2, "all"));
}

TEST_CASE("members' calls are compressed, of one tensor and of a list") {
  Fleet fleet;
  fleet.put_all();
  auto const check = [](std::vector<Answer> const& answers) {
    for (auto const& answer : answers) {
      INFO(answer.body);
      CHECK(answer.status == 200);
    }
  };
  check(fleet.call("all_reduce", {R"({"tensor":"x","compression":"int8"})"}));
  CHECK(distance(fleet.at(0), sum_of_three()) <= 0.08F);
  CHECK(fleet.at(0) == fleet.at(2));
  fleet.put_all();
  check(fleet.call("reduce_scatter", {R"({"tensor":"x","output":"part","counts":[20,0,7540],"compression":"bf16"})"}));
  CHECK(fleet.at(2, "part").size() == 7540);
  for (std::size_t w = 0; w < 3; ++w)
    for (auto const* name : {"a", "b"})
      fleet.cluster.worker(w).put_tensor(name, "f32", Floats(1000, static_cast<float>(w + 1)));
  check(fleet.call("all_reduce", {R"({"tensors":["a","b"],"reduce":"avg","compression":"int8"})"}));
  CHECK(distance(fleet.at(1, "b"), Floats(1000, 2)) <= 0.03F);
}

TEST_CASE("launches with error feedback add what the codes lacked, and are refused without compression") {
  Fleet fleet;
  Floats const values{127, 0.25F};
  for (std::size_t w = 0; w < 3; ++w) fleet.cluster.worker(w).put_tensor("x", "f32", values);
  auto const second = [&] {
    auto const answer =
        fleet.run({{"op", "all_gather"}, {"output", "all"}, {"compression", "int8"}, {"error_feedback", true}});
    INFO(json::serialize(answer));
    CHECK(answer.at("state") == "succeeded");
    return fleet.at(0, "all").at(5);
  };
  CHECK(second() == 0);
  CHECK(second() == 0);  // of 1/2, ties to even
  CHECK(second() == 1);  // of 3/4
  auto const refused = json::serialize(fleet.run({{"op", "all_reduce"}, {"error_feedback", true}}));
  CHECK(refused.find("/error_feedback") != std::string::npos);
}

TEST_CASE("members that ask for different formats all fail, and are told both") {
  Fleet fleet;
  fleet.put_all();
  auto const answers = fleet.call("all_reduce", {R"({"tensor":"x","algorithm":"mesh","compression":"int8"})",
                                                 R"({"tensor":"x","algorithm":"mesh","compression":"bf16"})"});
  for (auto const& answer : answers) {
    INFO(answer.body);
    CHECK(answer.code() == "plan_mismatch");
    CHECK(answer.body.find("as int8") != std::string::npos);
    CHECK(answer.body.find("as bf16") != std::string::npos);
  }
  CHECK(fleet.at(0) == vector_of(0));
}

TEST_CASE("what cannot be compressed is refused by name, and changes nothing") {
  Fleet fleet;
  fleet.put_all();
  for (std::size_t w = 0; w < 3; ++w) {
    fleet.cluster.worker(w).put_tensor("i", "i32", std::vector<std::int32_t>(100, 1));
    for (auto const* name : {"many/0", "many/1"}) fleet.cluster.worker(w).put_tensor(name, "f32", Floats(100, 1));
  }
  auto const refused = [&](json::object request, std::string const& why) {
    request["group"] = "g";
    if (!request.contains("tensor")) request["tensor"] = "x";
    auto const body = json::serialize(fleet.cluster.run(request));
    INFO(json::serialize(request), " -> ", body);
    CHECK(body.find("invalid_field") != std::string::npos);
    CHECK(body.find("/compression") != std::string::npos);
    CHECK(body.find(why) != std::string::npos);
  };
  refused({{"compression", "int9"}}, "did you mean 'int8'?");
  refused({{"compression", "int8"}, {"tensor", "i"}}, "i32 has no codes of int8");
  refused({{"compression", "int8"}, {"op", "all_to_all"}}, "all_to_all has none");
  refused({{"compression", "int8"}, {"reduce", "max"}}, "the error of max has no bound");
  refused({{"compression", "int8"}, {"algorithm", "ring"}}, "ring does not reduce every element in one place");
  refused({{"compression", "int8"}, {"tensor", "many"}, {"reduce", "avg"}}, "avg over several tensors");
  auto const call = fleet.cluster.worker(0).post("/v1/groups/g/all_reduce", R"({"tensor":"x","compression":"int9"})");
  CHECK(call.code() == "invalid_field");
  CHECK(call.body.find("did you mean 'int8'?") != std::string::npos);
  CHECK(fleet.at(0) == vector_of(0));
  auto const sum = fleet.run({{"op", "all_reduce"}, {"tensor", "x"}, {"compression", "int8"}});
  CHECK(sum.at("state") == "succeeded");
}

namespace {

// Two racks, of which one has two workers: in turn if ranks are as listed.
std::vector<std::string> const two_racks{"rack=a,host=0", "rack=b,host=1", "rack=a,host=2"};

json::object between(char const* level) { return {{"format", "int8"}, {"between", level}}; }

}  // namespace

TEST_CASE("codes between racks: launches and members' calls leave the same bits on every rank, near the sum") {
  Fleet fleet(two_racks);
  auto const check_sums = [&] {
    CHECK(distance(fleet.at(0), sum_of_three()) <= 0.08F);
    CHECK(fleet.at(0) == fleet.at(1));
    CHECK(fleet.at(0) == fleet.at(2));
  };
  for (bool const is_listed : {false, true}) {
    json::object wish{{"workers", {"w0", "w1", "w2"}}};
    if (is_listed) wish["order"] = "listed";
    REQUIRE(fleet.cluster.coordinator.put("/v1/groups/g", json::serialize(wish)).status == 200);
    for (bool const in_place : {false, true}) {
      fleet.put_all();
      auto const answer = fleet.run({{"op", "all_reduce"}, {"compression", between("rack")}, {"in_place", in_place}});
      INFO(json::serialize(answer));
      REQUIRE(answer.at("state") == "succeeded");
      CHECK(answer.at("algorithm") == "grouped_allpairs");
      CHECK(answer.at("compression_ratio").to_number<double>() == doctest::Approx(3.9375));
      CHECK(answer.at("request").at("compression").at("between") == "rack");
      check_sums();
    }
    fleet.put_all();
    auto const body = json::serialize(json::object{{"tensor", "x"}, {"compression", between("host")}});
    for (auto const& answer : fleet.call("all_reduce", {body})) {
      INFO(answer.body);
      REQUIRE(answer.status == 200);
      CHECK(answer.json().at("algorithm") == "grouped_allpairs");
    }
    check_sums();
  }
}

TEST_CASE("codes between zones change nothing where all members are in one") {
  Fleet fleet(two_racks);
  fleet.put_all();
  auto const plain = [&] {
    fleet.run({{"op", "all_reduce"}, {"algorithm", "ring"}, {"output", "y"}});
    return fleet.at(0, "y");
  }();
  auto const answer =
      fleet.run({{"op", "all_reduce"}, {"algorithm", "ring"}, {"output", "y"}, {"compression", between("zone")}});
  INFO(json::serialize(answer));
  CHECK(answer.at("state") == "succeeded");
  CHECK(!answer.as_object().contains("wire_bytes"));
  CHECK(fleet.at(1, "y") == plain);
}

TEST_CASE("members that ask for codes between other groups all fail, and are told both") {
  Fleet fleet(two_racks);
  fleet.put_all();
  auto const body = [](char const* level) {
    return json::serialize(json::object{{"tensor", "x"}, {"compression", between(level)}});
  };
  for (auto const& answer : fleet.call("all_reduce", {body("rack"), body("host")})) {
    INFO(answer.body);
    CHECK(answer.code() == "plan_mismatch");
    CHECK(answer.body.find("as int8 between racks") != std::string::npos);
    CHECK(answer.body.find("as int8 between hosts") != std::string::npos);
  }
  CHECK(fleet.at(0) == vector_of(0));
}

TEST_CASE("codes between racks that cannot be are refused by name, and change nothing") {
  Fleet fleet(two_racks);
  fleet.put_all();
  for (std::size_t w = 0; w < 3; ++w)
    fleet.cluster.worker(w).put_tensor("h", "f16", std::vector<std::uint16_t>(100, 1));
  auto const refused = [&](json::object request, std::string const& why, std::string const& at = "/compression") {
    request["group"] = "g";
    request["compression"] = between(request.contains("level") ? request.at("level").as_string().c_str() : "rack");
    request.erase("level");
    if (!request.contains("tensor")) request["tensor"] = "x";
    auto const body = json::serialize(fleet.cluster.run(request));
    INFO(json::serialize(request), " -> ", body);
    CHECK(body.find("invalid_field") != std::string::npos);
    CHECK(body.find(why) != std::string::npos);
    CHECK(body.find(R"("pointer":")" + at + "\"") != std::string::npos);
  };
  refused({{"level", "world"}}, "there are host, rack, zone, region");
  refused({{"tensor", "h"}}, "f16 has no codes of int8 between racks; between groups f32 and f64 have");
  refused({{"op", "reduce"}}, "no algorithm does reduce with codes between racks; all_reduce has one");
  refused({{"algorithm", "ring"}}, "ring sends no codes between groups; grouped_allpairs does", "/algorithm");
  refused({{"op", "broadcast"}}, "no algorithm does broadcast with codes between racks; all_reduce has one");
  refused({{"reproducible", true}}, "are not reproducible");
  auto const call = [&](std::string const& op, json::object request) {
    request["tensor"] = "x";
    request["compression"] = between("rack");
    return fleet.cluster.worker(0).post("/v1/groups/g/" + op, json::serialize(request)).body;
  };
  CHECK(call("reduce", {}).find("reduce has no algorithm with codes between racks; all_reduce has one") !=
        std::string::npos);
  CHECK(call("all_reduce", {{"algorithm", "ring"}}).find("grouped_allpairs does") != std::string::npos);
  CHECK(fleet.at(0) == vector_of(0));
}

TEST_CASE("a dry run counts codes") {
  Fleet fleet;
  auto const plan = [&](json::object request) {
    request["ranks"] = 4;
    request["bytes"] = 252 * 4 * 1000;
    request["algorithm"] = "allpairs";
    return fleet.cluster.coordinator.post("/v1/plans", json::serialize(request)).json();
  };
  auto const plain = plan({}), codes = plan({{"compression", "int8"}});
  INFO(json::serialize(codes));
  CHECK(codes.at("compression_ratio").to_number<double>() == doctest::Approx(3.9375));
  CHECK(codes.at("wire_bytes").to_number<std::uint64_t>() == 256 * 1000);
  CHECK(!plain.as_object().contains("compression_ratio"));
  CHECK(!plain.as_object().contains("wire_bytes"));
  CHECK(codes.at("lower_bound").at("bytes_per_rank").to_number<double>() * 3.9375 ==
        doctest::Approx(plain.at("lower_bound").at("bytes_per_rank").to_number<double>()));
}
