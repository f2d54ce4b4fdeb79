// Compression "auto" over real processes: what launches and members' calls decide, and what they report. The constants
// of the coordinator make the network or the codes slow, so no decision depends on this machine.
#include <doctest/doctest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/support/fleets/cluster.hpp"

using namespace chorus::testing;
namespace json = boost::json;

namespace {

constexpr std::size_t elements = 30 * 252;

constexpr char const* slow_network = R"({"uplink_s_per_byte":{"host":1e-6}})";
constexpr char const* slow_codes =
    R"({"codec":{"bf16":{"encode_s_per_byte":1e-3,"decode_s_per_byte":1e-3,"add_s_per_byte":1e-3},)"
    R"("int8":{"encode_s_per_byte":1e-3,"decode_s_per_byte":1e-3,"add_s_per_byte":1e-3}}})";

class Constants {
 public:
  explicit Constants(char const* text)
      : path_(std::filesystem::temp_directory_path() / ("constants-" + std::to_string(getpid()))) {
    std::ofstream(path_) << text;
  }
  ~Constants() { std::filesystem::remove(path_); }
  Constants(Constants const&) = delete;
  Constants& operator=(Constants const&) = delete;

  [[nodiscard]] std::vector<std::string> flags() const { return {"--constants", path_.string()}; }

 private:
  std::filesystem::path path_;
};

class Fleet {
 public:
  explicit Fleet(char const* constants_text,
                 std::vector<std::string> localities = {"rack=a,host=0", "rack=b,host=1", "rack=a,host=2"})
      : constants(constants_text), cluster(3, std::move(localities), constants.flags()) {
    cluster.make_group("g");
    for (std::size_t w = 0; w < 3; ++w)
      cluster.worker(w).put_tensor("x", "f32", std::vector<float>(elements, static_cast<float>(w + 1)));
  }

  json::object run(json::value const& compression, std::string const& output = "y") {
    json::object request{{"group", "g"}, {"op", "all_reduce"}, {"tensor", "x"}, {"output", output}};
    request["compression"] = compression;
    return cluster.run(request).as_object();
  }
  // Every member calls its own worker.
  std::vector<Answer> call(json::value const& compression) {
    auto const body = json::serialize(json::object{{"tensor", "x"}, {"output", "z"}, {"compression", compression}});
    std::vector<Answer> answers(3);
    std::vector<std::thread> calls;
    for (std::size_t w = 0; w < 3; ++w)
      calls.emplace_back([&, w] { answers[w] = cluster.worker(w).post("/v1/groups/g/all_reduce", body); });
    for (auto& each : calls) each.join();
    return answers;
  }
  // 1 + 2 + 3, off by the roundings of the format.
  void check_sum(std::string const& tensor) {
    for (std::size_t w = 0; w < 3; ++w)
      for (auto const value : cluster.worker(w).get_tensor<float>(tensor)) REQUIRE(std::abs(value - 6) <= 0.1F);
  }

  Constants constants;
  Cluster cluster;
};

json::object allow(std::initializer_list<json::value_ref> formats) {
  return {{"format", "auto"}, {"allow", json::array(formats)}};
}

}  // namespace

TEST_CASE("over a slow network a launch with auto sends the format of the fewest bytes that is allowed") {
  Fleet fleet(slow_network);
  auto const both = fleet.run(allow({"bf16", "int8"}));
  INFO(json::serialize(both));
  REQUIRE(both.at("state") == "succeeded");
  CHECK(both.at("wire_format") == "int8");
  CHECK(both.at("wire_bytes").to_number<double>() * 3.9375 == elements * 4);
  CHECK(both.at("compression_ratio").to_number<double>() == 3.9375);
  CHECK(both.at("request").at("compression").at("format") == "auto");
  auto const& considered = both.at("considered_formats").as_array();
  REQUIRE(considered.size() == 3);
  CHECK(considered[0].at("format") == "int8");
  CHECK(considered[1].at("format") == "bf16");
  CHECK(!considered[2].as_object().contains("format"));
  CHECK(both.at("reason").as_string().find("codes of int8: ") == 0);
  fleet.check_sum("y");

  auto const alone = fleet.run("auto");
  INFO(json::serialize(alone));
  REQUIRE(alone.at("state") == "succeeded");
  CHECK(alone.at("wire_format") == "bf16");
  CHECK(alone.at("ranks").at(0).at("report").at("bytes_sent").to_number<double>() >
        both.at("ranks").at(0).at("report").at("bytes_sent").to_number<double>());
  fleet.check_sum("y");
}

TEST_CASE("over a slow network members' calls with auto decide alike, and say what was sent") {
  Fleet fleet(slow_network);
  for (auto const& answer : fleet.call(allow({"bf16", "int8"}))) {
    INFO(answer.body);
    REQUIRE(answer.status == 200);
    CHECK(answer.json().at("wire_format") == "int8");
  }
  fleet.check_sum("z");
  for (auto const& answer : fleet.call("auto")) CHECK(answer.json().at("wire_format") == "bf16");
  auto const group = fleet.cluster.coordinator.get("/v1/groups/g").json();
  CHECK(group.at("compression").at(0).at("op") == "all_reduce");
}

TEST_CASE("between slow racks auto takes codes between them") {
  Fleet fleet(R"({"uplink_s_per_byte":{"rack":1e-6}})");
  auto wish = allow({"bf16", "int8"});
  wish["between"] = "rack";
  auto const answer = fleet.run(wish);
  INFO(json::serialize(answer));
  REQUIRE(answer.at("state") == "succeeded");
  CHECK(answer.at("wire_format") == "int8");
  CHECK(answer.at("algorithm") == "grouped_allpairs");
  fleet.check_sum("y");
  for (auto const& each : fleet.call(wish)) {
    INFO(each.body);
    CHECK(each.json().at("wire_format") == "int8");
    CHECK(each.json().at("algorithm") == "grouped_allpairs");
  }
  fleet.check_sum("z");
}

TEST_CASE("where codes are slow auto sends elements, exactly") {
  Fleet fleet(slow_codes);
  auto const answer = fleet.run(allow({"bf16", "int8"}));
  INFO(json::serialize(answer));
  REQUIRE(answer.at("state") == "succeeded");
  CHECK(!answer.contains("wire_format"));
  CHECK(!answer.contains("wire_bytes"));
  CHECK(answer.at("considered_formats").as_array().size() == 3);
  CHECK(answer.at("reason").as_string().find("elements: ") == 0);
  CHECK(fleet.cluster.worker(0).get_tensor<float>("y") == std::vector<float>(elements, 6));
  for (auto const& each : fleet.call("auto")) {
    INFO(each.body);
    REQUIRE(each.status == 200);
    CHECK(!each.json().as_object().contains("wire_format"));
  }
  CHECK(fleet.cluster.worker(2).get_tensor<float>("z") == std::vector<float>(elements, 6));
}

TEST_CASE("on one host auto compresses nothing, and the record says why") {
  Fleet fleet(slow_network, {"host=h", "host=h", "host=h"});
  auto const answer = fleet.run("auto");
  INFO(json::serialize(answer));
  REQUIRE(answer.at("state") == "succeeded");
  CHECK(!answer.contains("wire_format"));
  CHECK(answer.at("reason").as_string().find("codes are not considered: all ranks are on one host") !=
        std::string::npos);
  for (auto const& each : fleet.call("auto")) CHECK(!each.json().as_object().contains("wire_format"));
  CHECK(fleet.cluster.worker(1).get_tensor<float>("z") == std::vector<float>(elements, 6));
}

TEST_CASE("auto that allows nothing or is beside error feedback is refused, and so is what has no codes") {
  Fleet fleet(slow_network);
  auto const refused = [&](json::object request, std::string const& why) {
    auto const body = json::serialize(request);
    auto const member = fleet.cluster.worker(0).post("/v1/groups/g/all_reduce", body).body;
    request["group"] = "g";
    request["op"] = "all_reduce";
    auto const launch = json::serialize(fleet.cluster.run(request));
    INFO(body, " -> ", launch, " -> ", member);
    CHECK(launch.find(why) != std::string::npos);
    CHECK(member.find(why) != std::string::npos);
  };
  refused({{"tensor", "x"}, {"compression", allow({})}}, "has to be allowed a format");
  refused({{"tensor", "x"}, {"compression", allow({"int9"})}}, "unknown format 'int9'");
  auto beside_a_format = allow({"int8"});
  beside_a_format["format"] = "int8";
  refused({{"tensor", "x"}, {"compression", beside_a_format}}, "not beside a format");
  refused({{"tensor", "x"}, {"compression", "auto"}, {"error_feedback", true}}, "name the format");
  refused({{"tensor", "x"}, {"compression", "auto"}, {"reduce", "max"}}, "the error of max has no bound");
}
