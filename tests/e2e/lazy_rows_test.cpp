// Rows that are created by the first push to them: through any worker, on backups, in checkpoints and logs.
#include <doctest/doctest.h>

#include <filesystem>

#include "tests/support/fleets/parameters.hpp"
#include "tests/support/scratch_directory.hpp"

using namespace chorus::testing;

namespace {

using Floats = std::vector<float>;
using Rows = std::vector<std::uint64_t>;
// 2^40 rows of 4: more than any memory holds.
std::string const embedding =
    R"("group":"g","shape":[1099511627776,4],"lazy_rows":1000,"shards":2,"optimizer":{"name":"adagrad"},)"
    R"("initializer":{"name":"normal","deviation":0.5,"seed":11})";

httplib::Headers count_of(Rows const& rows) { return {{"Chorus-Rows", std::to_string(rows.size())}}; }

Answer push(ParameterClient& client, Rows const& rows, Floats const& gradient) {
  return client.push("e", ParameterClient::bytes(rows) + ParameterClient::bytes(gradient), {}, "rows/gradient",
                     count_of(rows));
}

Floats pull(Service& worker, Rows const& rows) {
  ParameterClient const client(worker.url, "reader");
  auto const answer = client.post("/v1/parameters/e/rows", ParameterClient::bytes(rows), count_of(rows));
  REQUIRE_MESSAGE(answer.status == 200, answer.body);
  return ParameterClient::values<float>(answer.body);
}

std::uint64_t rows_of(Service& worker) {
  std::uint64_t rows = 0;
  auto const shards = worker.get("/v1/parameters").json();
  for (auto const& shard : shards.at("items").as_array()) rows += shard.at("rows").to_number<std::uint64_t>();
  return rows;
}

Rows const far_apart{3, 7, 600'000'000'000, 1'099'511'627'775};

}  // namespace

TEST_CASE("a row out of 2^40 is created by its first push, with the same bits at every worker") {
  Cluster cluster(2);
  cluster.make_group("g");
  auto const made = cluster.coordinator.put("/v1/parameters/e", "{" + embedding + "}");
  REQUIRE_MESSAGE(made.status == 201, made.body);
  auto const initial = pull(cluster.worker(0), far_apart);
  CHECK(pull(cluster.worker(1), far_apart) == initial);
  CHECK(rows_of(cluster.worker(0)) + rows_of(cluster.worker(1)) == 0);
  ParameterClient client(cluster.worker(0).url, "c");
  REQUIRE(push(client, {7, 600'000'000'000}, Floats(8, 1)).status == 200);
  CHECK(rows_of(cluster.worker(0)) + rows_of(cluster.worker(1)) == 2);
  auto const after = pull(cluster.worker(1), far_apart);
  CHECK(Floats(after.begin(), after.begin() + 4) == Floats(initial.begin(), initial.begin() + 4));
  CHECK(Floats(after.begin() + 4, after.begin() + 8) != Floats(initial.begin() + 4, initial.begin() + 8));
  CHECK(Floats(after.begin() + 12, after.end()) == Floats(initial.begin() + 12, initial.end()));
}

TEST_CASE("a push beyond lazy_rows is refused and changes nothing, and requests for all rows are refused") {
  Cluster cluster(1);
  cluster.make_group("g");
  REQUIRE(cluster.coordinator.put("/v1/parameters/e", R"({"group":"g","shape":[100,1],"lazy_rows":2})").status == 201);
  ParameterClient client(cluster.worker(0).url, "c");
  REQUIRE(push(client, {1, 2}, {1, 1}).status == 200);
  CHECK(push(client, {2, 3}, {1, 1}).code() == "rows_exhausted");
  CHECK(push(client, {1, 2}, {1, 1}).status == 200);
  CHECK(pull(cluster.worker(0), {1, 2, 3}) == Floats{2, 2, 0});
  CHECK(client.pull("e").code() == "unsupported");
  CHECK(client.push("e", std::string(400, '\0')).code() == "unsupported");
  for (auto const* const wrong :
       {R"({"group":"g","shape":[4],"lazy_rows":0})", R"({"group":"g","shape":[],"lazy_rows":1})",
        R"({"group":"g","shape":[2,2],"lazy_rows":1,"shards":3})"})
    CHECK(cluster.coordinator.put("/v1/parameters/x", wrong).code() == "invalid_field");
}

TEST_CASE("the backup has all created rows, and goes on with them when the owner is killed") {
  Cluster cluster(3);
  cluster.make_group("g");
  REQUIRE(cluster.coordinator.put("/v1/parameters/e", "{" + embedding + R"(,"replicas":2})").status == 201);
  ParameterClient client(cluster.worker(0).url, "c");
  for (int i = 0; i < 5; ++i) REQUIRE(push(client, far_apart, Floats(16, 1)).status == 200);
  auto const before = pull(cluster.worker(0), far_apart);
  cluster.kill_worker(1);
  CHECK(eventually([&] { return cluster.coordinator.get("/v1/parameters/e").json().at("state") == "ready"; },
                   std::chrono::seconds(30)));
  CHECK(pull(cluster.worker(0), far_apart) == before);
  cluster.kill_worker(2);
  CHECK(pull(cluster.worker(0), far_apart) == before);
  CHECK(rows_of(cluster.worker(0)) == far_apart.size());
}

TEST_CASE("a checkpoint has all created rows, and is loaded with any number of shards") {
  ScratchDirectory const directory;
  auto const root = directory / "checkpoints";
  std::filesystem::create_directory(root);
  auto const start = [&] {
    auto cluster = std::make_unique<Cluster>(0);
    for (auto const* const id : {"w0", "w1"}) cluster->add_worker(id, "host=h0", {"--checkpoint-directory", root});
    cluster->make_group("g");
    return cluster;
  };
  Floats before, after;
  {
    auto const cluster = start();
    REQUIRE(cluster->coordinator.put("/v1/parameters/e", "{" + embedding + "}").status == 201);
    ParameterClient client(cluster->worker(0).url, "c");
    for (int i = 0; i < 3; ++i) REQUIRE(push(client, far_apart, Floats(16, 1)).status == 200);
    before = pull(cluster->worker(0), far_apart);
    auto const written = cluster->coordinator.post("/v1/checkpoints", R"({"name":"c"})");
    REQUIRE_MESSAGE(written.status == 201, written.body);
    REQUIRE(push(client, far_apart, Floats(16, 1)).status == 200);
    after = pull(cluster->worker(0), far_apart);
  }
  for (auto const* const shards : {"1", "2", "5"}) {
    CAPTURE(shards);
    auto const cluster = start();
    auto request = "{" + embedding + R"(,"checkpoint":{"name":"c"}})";
    request.replace(request.find(R"("shards":2)"), 10, std::string(R"("shards":)") + shards);
    auto const made = cluster->coordinator.put("/v1/parameters/e", request);
    REQUIRE_MESSAGE(made.status == 201, made.body);
    CHECK(pull(cluster->worker(0), far_apart) == before);
    CHECK(rows_of(cluster->worker(0)) + rows_of(cluster->worker(1)) == far_apart.size());
    ParameterClient const client(cluster->worker(1).url, "c");
    auto headers = count_of(far_apart);
    headers.merge(httplib::Headers{{"Chorus-Client", "c"}, {"Chorus-Sequence", "3"}});
    auto const next = client.post("/v1/parameters/e/rows/gradient",
                                  ParameterClient::bytes(far_apart) + ParameterClient::bytes(Floats(16, 1)), headers);
    CHECK_MESSAGE(next.status == 200, next.body);
    CHECK(pull(cluster->worker(0), far_apart) == after);
  }
}
