// Messages about parameters keep every field, and negative numbers, when they are read and written.
#include <doctest/doctest.h>

#include "http/api/parameters/parameters.hpp"
#include "http/json/json.hpp"

using namespace chorus;
using namespace chorus::http;

namespace {

std::string const optimizer = R"({"name":"sgd","learning_rate":0.5})";
std::string const initializer = R"({"name":"normal","mean":0,"deviation":2,"seed":18446744073709551615})";
std::string const endpoint =
    R"({"shard":2,"elements":[6,9],"role":"owner","worker":"w","incarnation":"ab","url":"http://w:1","epoch":4})";

std::string parameter(std::string const& endpoints) {
  return R"({"name":"a/b","dtype":"f16","shape":[3,3],"group":"g","optimizer":)" + optimizer + R"(,"initializer":)" +
         initializer + R"(,"staleness":-1,"reduce":"avg","replicas":2,"nonfinite":"zero","clients":["x"],)" +
         R"("lazy_rows":2,"durability":"log","device":"cuda","bytes":18,)" +
         R"("epoch":4,"uid":"00000000000000ab","why":"y","state":"ready","endpoints":[)" + endpoints + "]}";
}

std::string list_of(std::string const& item) { return R"({"items":[)" + item + R"(],"next_cursor":"n"})"; }

template <class Message>
std::string read_back(std::string const& text) {
  auto const message = decode<Message>(text);
  REQUIRE_MESSAGE(message.has_value(), message.error().detail);
  return encode(*message);
}

}  // namespace

TEST_CASE("messages about parameters read back as written") {
  auto const request =
      R"({"dtype":"f16","shape":[3,3],"group":"g","optimizer":)" + optimizer + R"(,"initializer":)" + initializer +
      R"(,"staleness":-1,"reduce":"avg","replicas":2,"nonfinite":"zero","shards":3,)" +
      R"("clients":["x"],"checkpoint":{"name":"c","number":7},"lazy_rows":2,"durability":"log","device":"cuda","recreate":true})";
  CHECK(read_back<api::ParameterRequest>(request) == request);
  CHECK(read_back<api::Parameter>(parameter(endpoint)) == parameter(endpoint));
  auto const list = list_of(parameter(""));
  CHECK(read_back<api::ParameterList>(list) == list);
  auto const answer = R"({"version":5,"epoch":2,"next_sequence":9,"duplicate":true})";
  CHECK(read_back<api::PushAnswer>(answer) == answer);
}

TEST_CASE("messages about shards read back as written") {
  auto const assignment = R"({"parameter":)" + parameter("") +
                          R"(,"shard":2,"begin":6,"end":9,"epoch":4,"role":"backup","worker":"w","incarnation":"ab",)" +
                          R"("fresh":true,"continues":true,"checkpoint":{"name":"c"},"recover":true,)" +
                          R"("backups":[{"worker":"v","incarnation":"cd","url":"http://v:1"}]})";
  CHECK(read_back<api::ShardAssignment>(assignment) == assignment);
  auto const status =
      R"({"parameter":"a/b","shard":2,"begin":6,"end":9,"epoch":4,"role":"owner","complete":true,"version":5,)"
      R"("position":8,"backups_complete":["v"],"clocks":[],"rows":1,"unconfirmed":true})";
  CHECK(read_back<api::ShardStatus>(status) == status);
  auto const list = list_of(status);
  CHECK(read_back<api::ShardStatusList>(list) == list);
  auto const state =
      R"({"version":5,"position":8,"steps":4,"clients":[{"name":"x","incarnation":"ab","next_sequence":9}],)"
      R"("clocks":[{"client":"x","clocks_done":3}],"held":[{"client":"x","sequence":8,"dtype":"f32","rows":2}],"rows":1})";
  CHECK(read_back<api::ShardState>(state) == state);
}

TEST_CASE("messages about checkpoints read back as written") {
  auto const request = R"({"name":"c","parameters":["w"],"keep":3})";
  CHECK(read_back<api::CheckpointRequest>(request) == request);
  auto const answer = R"({"name":"c","number":7,"parameters":2,"files":3,"seconds":0.5,"unaligned":["w"]})";
  CHECK(read_back<api::CheckpointAnswer>(answer) == answer);
  auto const file = R"({"number":7,"shards":[{"parameter":"w","shard":1}]})";
  CHECK(read_back<api::CheckpointFile>(file) == file);
  auto const commit = R"({"number":7,"keep":3,"parts":["{}"]})";
  CHECK(read_back<api::CheckpointCommit>(commit) == commit);
}

TEST_CASE("a signed number is read up to both ends of its range, and refused beyond them") {
  auto const request = [](std::string const& staleness) {
    return decode<api::ParameterRequest>(R"({"shape":[1],"group":"g","staleness":)" + staleness + "}");
  };
  CHECK(request("-9223372036854775808").value().staleness == INT64_MIN);
  CHECK(request("9223372036854775807").value().staleness == INT64_MAX);
  CHECK(request("-1").value().staleness == -1);
  for (auto const* const wrong : {"9223372036854775808", "-9223372036854775809", "1.5", "\"1\"", "true"})
    CHECK(request(wrong).has_error());
}

TEST_CASE("a parameter's name is one that fits in a path") {
  for (auto const* const good : {"w", "layer.0/weight", "a~b-c_D9"}) CHECK(api::is_parameter_name(good));
  for (auto const* const bad : {"", "/", "a/", "/a", "a//b", ".", "a/..", "a b", "a\nb", "\xc3\xa9"})
    CHECK_FALSE(api::is_parameter_name(bad));
  CHECK(api::is_parameter_name(std::string(255, 'a')));
  CHECK_FALSE(api::is_parameter_name(std::string(256, 'a')));
  CHECK(api::parameter_path("a/b") == "/v1/parameters/a%2Fb");
}
