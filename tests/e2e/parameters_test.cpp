// The parameter server for its users: a coordinator and workers as processes, accessed like with curl.
#include <doctest/doctest.h>

#include <atomic>
#include <charconv>
#include <future>
#include <limits>
#include <numeric>

#include "tests/support/fleets/parameters.hpp"

using namespace chorus::testing;

namespace {

using Floats = std::vector<float>;

std::string bytes(Floats const& values) { return ParameterClient::bytes(values); }

Floats pulled(ParameterClient const& client, std::string const& parameter) {
  auto const answer = client.pull(parameter);
  REQUIRE_MESSAGE(answer.status == 200, answer.body);
  return ParameterClient::values<float>(answer.body);
}

boost::json::value make(Cluster& cluster, std::string const& name, boost::json::object request) {
  request.emplace("group", "g");
  auto const answer = cluster.coordinator.put("/v1/parameters/" + name, boost::json::serialize(request));
  REQUIRE_MESSAGE(answer.status == 201, answer.body);
  return answer.json();
}

std::string worker_with(boost::json::value const& parameter, std::string_view role, std::size_t shard = 0) {
  for (auto const& endpoint : parameter.at("endpoints").as_array())
    if (endpoint.at("role").as_string() == role && endpoint.at("shard").to_number<std::size_t>() == shard)
      return std::string(endpoint.at("worker").as_string());
  return "";
}

// The number in a name such as "w7".
std::size_t index_of(std::string const& worker) {
  std::size_t index = 0;
  std::from_chars(worker.data() + 1, worker.data() + worker.size(), index);
  return index;
}

Floats counting(std::size_t count) {
  Floats values(count);
  std::iota(values.begin(), values.end(), 0.0F);
  return values;
}

}  // namespace

TEST_CASE("any worker answers for a parameter of any owner") {
  Cluster cluster(3);
  cluster.make_group("g");
  make(cluster, "layer.0%2Fweight", {{"shape", {2, 3}}});
  for (std::size_t i = 0; i < 3; ++i) {
    ParameterClient client(cluster.worker(i).url, "c" + std::to_string(i));
    CHECK(client.push("layer.0%2Fweight", bytes(counting(6))).status == 200);
  }
  ParameterClient const reader(cluster.worker(1).url, "reader");
  auto const answer = reader.pull("layer.0%2Fweight");
  CHECK(ParameterClient::values<float>(answer.body) == Floats{0, 3, 6, 9, 12, 15});
  CHECK(answer.header("Tensor-Shape") == "2,3");
  CHECK(answer.header("ETag") == "\"1.3\"");
  auto const part = reader.pull("layer.0%2Fweight", {{"Range", "bytes=4-11"}});
  CHECK(part.status == 206);
  CHECK(ParameterClient::values<float>(part.body) == Floats{3, 6});
  auto const same = reader.pull("layer.0%2Fweight", {{"If-None-Match", answer.header("ETag")}});
  CHECK(same.status == 304);
  CHECK(same.body.empty());
}

TEST_CASE("If-Match reads exactly the values that it names, at any worker") {
  Cluster cluster(3);
  cluster.make_group("g");
  make(cluster, "w", {{"shape", {6}}});
  ParameterClient client(cluster.worker(0).url, "c");
  CHECK(client.push("w", bytes(counting(6))).status == 200);
  auto const tag = client.pull("w").header("ETag");
  for (std::size_t i = 0; i < 3; ++i) {
    ParameterClient const reader(cluster.worker(i).url, "reader");
    auto const matched = reader.pull("w", {{"If-Match", tag}});
    CHECK(matched.status == 200);
    CHECK(ParameterClient::values<float>(matched.body) == counting(6));
    CHECK(reader.pull("w", {{"If-Match", "*"}}).status == 200);
    CHECK(reader.pull("w", {{"If-Match", "\"1.99\""}}).status == 412);
  }
  CHECK(client.push("w", bytes(counting(6))).status == 200);
  for (std::size_t i = 0; i < 3; ++i)
    CHECK(ParameterClient(cluster.worker(i).url, "reader").pull("w", {{"If-Match", tag}}).status == 412);
}

TEST_CASE("a parameter in several shards reads and writes as one array") {
  Cluster cluster(4);
  cluster.make_group("g");
  auto const made = make(cluster, "big", {{"shape", {1000003}}});
  CHECK(made.at("endpoints").as_array().size() == 4);
  ParameterClient client(cluster.worker(0).url, "c");
  auto const gradient = counting(1000003);
  CHECK(client.push("big", bytes(gradient)).status == 200);
  CHECK(client.repeat("big", bytes(gradient), 0).json().at("duplicate") == true);
  CHECK(pulled(client, "big") == gradient);
  auto const tag = client.pull("big").header("ETag");
  CHECK(client.pull("big", {{"If-None-Match", tag}}).status == 304);
  // Across the end of the first shard.
  auto const part = client.pull("big", {{"Range", "bytes=1000000-1000015"}});
  CHECK(ParameterClient::values<float>(part.body) == Floats{250000, 250001, 250002, 250003});
  auto const both = client.push("big", bytes(gradient), {}, "push_pull");
  CHECK(ParameterClient::values<float>(both.body).at(7) == 14);
  CHECK(client.pull("big", {{"If-None-Match", tag}}).status == 200);
}

TEST_CASE("each push counts once, however often and at whichever worker clients repeat it") {
  Cluster cluster(3);
  cluster.make_group("g");
  make(cluster, "w", {{"shape", {4}}, {"shards", 2}});
  std::vector<std::future<void>> clients;
  for (int c = 0; c < 4; ++c)
    clients.push_back(std::async(std::launch::async, [&cluster, c] {
      ParameterClient client(cluster.worker(0).url, "c" + std::to_string(c));
      for (std::size_t i = 0; i < 25; ++i) {
        client.ask(cluster.worker(i % 3).url);
        auto const one = bytes({1, 1, 1, 1});
        if (client.push("w", one).status != 200) throw std::runtime_error("a push was refused");
        for (std::size_t again = 0; again < 3; ++again) {
          client.ask(cluster.worker((i + again) % 3).url);
          if (client.repeat("w", one, i - i % (again + 1)).json().at("duplicate") != true)
            throw std::runtime_error("a repeated push was not recognized");
        }
      }
    }));
  for (auto& client : clients) client.get();
  CHECK(pulled(ParameterClient(cluster.worker(2).url, "r"), "w") == Floats(4, 100));
}

TEST_CASE("a push that overtakes an earlier one waits for it") {
  Cluster cluster(1);
  cluster.make_group("g");
  make(cluster, "w", {{"shape", {1}}});
  ParameterClient const client(cluster.worker(0).url, "c");
  auto second = std::async(std::launch::async, [&] { return client.repeat("w", bytes({10}), 1); });
  CHECK(eventually([&] { return cluster.worker(0).metric("chorus_parameter_waits_total{what=\"push\"}") >= 1; }));
  CHECK(client.repeat("w", bytes({1}), 0).json().at("version") == 1);
  CHECK(second.get().json().at("version") == 2);
}

TEST_CASE("with staleness 0 the version moves when all clients have pushed, and readers wait for it") {
  Cluster cluster(2);
  cluster.make_group("g");
  make(cluster, "w", {{"shape", {2}}, {"staleness", 0}, {"shards", 2}});
  ParameterClient a(cluster.worker(0).url, "w0"), b(cluster.worker(1).url, "w1");
  CHECK(a.push("w", bytes({1, 2}), 0).json().at("version") == 0);
  auto const early = a.pull("w", {{"Chorus-Clock", "1"}}, "?timeout_ms=1000");
  CHECK(early.code() == "deadline_exceeded");
  CHECK(early.body.find("clock 1 waits for w1") != std::string::npos);
  auto waiting = std::async(std::launch::async, [&] { return a.pull("w", {{"Chorus-Clock", "1"}}); });
  auto const both = b.push("w", bytes({10, 20}), 0, "push_pull");
  CHECK(ParameterClient::values<float>(both.body) == Floats{11, 22});
  CHECK(ParameterClient::values<float>(waiting.get().body) == Floats{11, 22});
}

TEST_CASE("a round ends with the bits of a reproducible all_reduce of the same gradients") {
  Cluster cluster(3);
  auto const ids = cluster.make_group("g");
  make(cluster, "w", {{"shape", {5000}}, {"staleness", 0}, {"shards", 2}});
  std::vector<Floats> gradients(3, Floats(5000));
  for (std::size_t rank = 0; rank < 3; ++rank) {
    for (std::size_t i = 0; i < 5000; ++i)
      gradients[rank][i] = 1.0F / static_cast<float>(7 * i + 13 * rank + 1) - 0.01F * static_cast<float>(rank);
    CHECK(cluster.at_rank("g", static_cast<std::uint32_t>(rank)).put_tensor("x", "f32", gradients[rank]).status < 300);
  }
  auto const ended = cluster.run({{"group", "g"}, {"op", "all_reduce"}, {"tensor", "x"}, {"reproducible", true}});
  REQUIRE(ended.at("state") == "succeeded");
  // Pushes in another order than that of the ranks.
  for (std::size_t const rank : {2, 0, 1}) {
    ParameterClient client(cluster.worker(0).url, ids.at(rank));
    REQUIRE(client.push("w", bytes(gradients[rank]), 0).status == 200);
  }
  auto const sum = cluster.at_rank("g", 0).get_tensor<float>("x");
  CHECK(ParameterClient(cluster.worker(1).url, "r").pull("w", {{"Chorus-Clock", "1"}}).body == bytes(sum));
}

TEST_CASE("with bounded staleness the fast client runs ahead no further than the bound") {
  Cluster cluster(2);
  cluster.make_group("g");
  make(cluster, "w", {{"shape", {1}}, {"staleness", 2}});
  ParameterClient fast(cluster.worker(0).url, "w0"), slow(cluster.worker(0).url, "w1");
  for (std::uint64_t clock = 0; clock < 3; ++clock) {
    CHECK(fast.pull("w", {{"Chorus-Clock", std::to_string(clock)}}).status == 200);
    CHECK(fast.push("w", bytes({1}), clock).status == 200);
  }
  CHECK(fast.pull("w", {{"Chorus-Clock", "3"}}, "?timeout_ms=300").code() == "deadline_exceeded");
  auto waiting = std::async(std::launch::async, [&] { return fast.pull("w", {{"Chorus-Clock", "3"}}); });
  CHECK(slow.push("w", bytes({100}), 0).status == 200);
  CHECK(ParameterClient::values<float>(waiting.get().body) == Floats{103});
}

TEST_CASE("rows are pulled and pushed over all shards") {
  Cluster cluster(3);
  cluster.make_group("g");
  make(cluster, "embedding",
       {{"shape", {30, 2}}, {"shards", 3}, {"initializer", {{"name", "constant"}, {"value", 0.5}}}});
  ParameterClient client(cluster.worker(1).url, "c");
  std::vector<std::uint64_t> const numbers{0, 10, 10, 29};
  auto const body = ParameterClient::bytes(numbers) + bytes({1, 2, 3, 4, 5, 6, 7, 8});
  CHECK(client.push("embedding", body, {}, "rows/gradient", {{"Chorus-Rows", "4"}}).status == 200);
  std::vector<std::uint64_t> const wanted{0, 10, 11, 29};
  auto const answer =
      client.post("/v1/parameters/embedding/rows", ParameterClient::bytes(wanted), {{"Chorus-Rows", "4"}});
  CHECK(ParameterClient::values<float>(answer.body) == Floats{1.5, 2.5, 8.5, 10.5, 0.5, 0.5, 7.5, 8.5});
  CHECK(client
            .push("embedding", ParameterClient::bytes(std::vector<std::uint64_t>{30}) + bytes({1, 2}), {},
                  "rows/gradient", {{"Chorus-Rows", "1"}})
            .code() == "invalid_field");
}

TEST_CASE("bad pushes are refused and counted, and other clients go on") {
  Cluster cluster(2);
  cluster.make_group("g");
  make(cluster, "w", {{"shape", {2}}, {"nonfinite", "reject"}});
  make(cluster, "z", {{"shape", {2}}, {"nonfinite", "zero"}});
  ParameterClient client(cluster.worker(0).url, "c");
  auto const nan = std::numeric_limits<float>::quiet_NaN();
  CHECK(client.push("w", bytes({1, 2, 3})).code() == "length_mismatch");
  CHECK(client.push("w", bytes({1, 2}), {}, "gradient", {{"Tensor-Dtype", "f64"}}).code() == "mismatch");
  CHECK(client.push("w", bytes({1, nan})).code() == "non_finite");
  CHECK(client.push("nothing", bytes({1, 2})).code() == "unknown_parameter");
  CHECK(client.pull("w", {}, "?min_version=100&timeout_ms=10").code() == "deadline_exceeded");
  CHECK(client.pull("w", {{"Range", "bytes=8-"}}).status == 416);
  CHECK(client.post("/v1/parameters/w/gradient", bytes({1, 2}), {}).code() == "bad_request");
  CHECK(client.push("w", bytes({1, 2})).status == 200);
  CHECK(pulled(client, "w") == Floats{1, 2});
  CHECK(client.push("z", bytes({nan, 2})).status == 200);
  CHECK(pulled(client, "z") == Floats{0, 2});
  double counted = 0;
  for (std::size_t i = 0; i < 2; ++i)
    counted += std::max(0.0, cluster.worker(i).metric("chorus_parameter_nonfinite_total"));
  CHECK(counted == 2);
}

TEST_CASE("messages from owners to backups are checked: rows beyond the end, arrays beyond their size, other epochs") {
  Cluster cluster(2);
  cluster.make_group("g");
  auto const made = make(cluster, "w", {{"shape", {4, 2}}, {"replicas", 2}});
  auto& backup = cluster.worker(index_of(worker_with(made, "backup")));
  ParameterClient client(backup.url, "c");
  std::string const shard = "/v1/parameters/w/shards/0";
  auto const log = [&](std::uint64_t row, std::string const& epoch, std::string const& position) {
    auto const body = ParameterClient::bytes(std::vector<std::uint64_t>{row}) + bytes({1, 2});
    return client
        .post(shard + "/log", body,
              {{"Chorus-Epoch", epoch},
               {"Chorus-Position", position},
               {"Chorus-Kind", "rows"},
               {"Chorus-Rows", "1"},
               {"Chorus-Client", "c"},
               {"Chorus-Sequence", "0"}})
        .code();
  };
  CHECK(log(std::uint64_t{1} << 60, "1", "0") == "invalid_field");
  CHECK(log(0, "0", "0") == "epoch_fenced");
  CHECK(log(0, "2", "0") == "unavailable");
  CHECK(log(0, "1", "7") == "out_of_order");
  CHECK(client.push("w", bytes(Floats(8, 1))).status == 200);
  CHECK(pulled(client, "w") == Floats(8, 1));

  auto const array = [&](std::string const& query) {
    httplib::Client raw(backup.url);
    auto const answer = raw.Put(shard + "/arrays/values?image=9&" + query, {{"Chorus-Epoch", "1"}}, bytes({1, 2}),
                                "application/octet-stream");
    return answer->status;
  };
  CHECK(array("bytes=32&offset=28") == 409);
  CHECK(array("bytes=32&offset=18446744073709551612") == 409);
  CHECK(array("bytes=18446744073709551615&offset=0") == 409);
  CHECK(backup.get("/livez").status == 200);
}

TEST_CASE("the backup of a killed owner goes on within two seconds; no acknowledged push is lost, none counts twice") {
  Cluster cluster(4, {"host=h0", "host=h1", "host=h2", "host=h3"});
  cluster.make_group("g");
  auto const made =
      make(cluster, "w", {{"shape", {1000}}, {"replicas", 2}, {"shards", 2}, {"optimizer", {{"name", "none"}}}});
  auto const victim = index_of(worker_with(made, "owner"));
  auto const entry = victim == 0 ? std::size_t{1} : std::size_t{0};

  std::vector<std::future<std::uint64_t>> clients;
  std::atomic<bool> ends = false;
  std::atomic<std::uint64_t> total = 0;
  for (int c = 0; c < 3; ++c)
    clients.push_back(std::async(std::launch::async, [&, c] {
      ParameterClient client(cluster.worker(entry).url, "c" + std::to_string(c));
      while (!ends) {
        if (client.push("w", bytes(Floats(1000, 1))).status == 200) ++total;
      }
      return client.sequence("w");
    }));
  CHECK(eventually([&] { return total > 20; }));
  cluster.kill_worker(victim);
  auto const killed = std::chrono::steady_clock::now();
  auto const before = total.load();
  CHECK(eventually([&] { return total > before + 10; }));
  CHECK(std::chrono::steady_clock::now() - killed < std::chrono::seconds(2));
  ends = true;
  std::uint64_t acknowledged = 0;
  for (auto& client : clients) acknowledged += client.get();
  ParameterClient const reader(cluster.worker(entry).url, "r");
  CHECK(pulled(reader, "w") == Floats(1000, static_cast<float>(acknowledged)));
  CHECK(eventually([&] { return cluster.coordinator.get("/v1/parameters/w").json().at("state") == "ready"; }));

  // Kills the owner again: the new backup has all pushes.
  auto const again = index_of(worker_with(cluster.coordinator.get("/v1/parameters/w").json(), "owner"));
  if (again != entry) {
    cluster.kill_worker(again);
    CHECK(pulled(reader, "w") == Floats(1000, static_cast<float>(acknowledged)));
  }
}

TEST_CASE("a killed backup delays a push by less than two seconds") {
  Cluster cluster(3);
  cluster.make_group("g");
  auto const made = make(cluster, "w", {{"shape", {10}}, {"replicas", 2}});
  auto const owner = index_of(worker_with(made, "owner"));
  ParameterClient client(cluster.worker(owner).url, "c");
  CHECK(client.push("w", bytes(Floats(10, 1))).status == 200);
  cluster.kill_worker(index_of(worker_with(made, "backup")));
  auto const killed = std::chrono::steady_clock::now();
  CHECK(client.push("w", bytes(Floats(10, 1))).status == 200);
  CHECK(std::chrono::steady_clock::now() - killed < std::chrono::seconds(2));
  CHECK(eventually([&] { return cluster.coordinator.get("/v1/parameters/w").json().at("state") == "ready"; }));
  CHECK(pulled(client, "w") == Floats(10, 2));
}

TEST_CASE("without replicas the death of an owner is an error that names it, and other parameters stay usable") {
  Cluster cluster(2);
  cluster.make_group("g");
  auto const made = make(cluster, "lost", {{"shape", {4}}});
  auto const other = make(cluster, "other", {{"shape", {4}}});
  REQUIRE(worker_with(made, "owner") != worker_with(other, "owner"));
  auto const victim = index_of(worker_with(made, "owner"));
  ParameterClient client(cluster.worker(1 - victim).url, "c");
  cluster.kill_worker(victim);
  CHECK(client.pull("lost", {}, "?timeout_ms=1500").status >= 500);
  CHECK(cluster.coordinator.get("/v1/parameters/lost").json().at("state") == "lost");
  CHECK(client.pull("lost", {}, "?timeout_ms=500").status >= 500);
  CHECK(client.push("other", bytes(Floats(4, 1))).status == 200);
}

TEST_CASE("the shards of a worker that leaves the group move during pushes") {
  Cluster cluster(3);
  cluster.make_group("g");
  auto const made = make(cluster, "w", {{"shape", {3000}}, {"shards", 3}});
  auto const leaver = worker_with(made, "owner", 1);
  std::vector<std::string> stay;
  for (std::size_t i = 0; i < 3; ++i)
    if (cluster.worker(i).id != leaver) stay.push_back(cluster.worker(i).id);
  auto const entry = index_of(stay[0]);
  std::atomic<bool> ends = false;
  auto pushes = std::async(std::launch::async, [&] {
    ParameterClient client(cluster.worker(entry).url, "c");
    while (!ends)
      if (client.push("w", bytes(Floats(3000, 1))).status != 200) throw std::runtime_error("a push was refused");
    return client.sequence("w");
  });
  cluster.make_group("g", stay);
  CHECK(eventually([&] {
    auto const now = cluster.coordinator.get("/v1/parameters/w").json();
    for (std::size_t shard = 0; shard < 3; ++shard)
      if (worker_with(now, "owner", shard) == leaver) return false;
    return true;
  }));
  cluster.kill_worker(index_of(leaver));
  ends = true;
  auto const count = pushes.get();
  CHECK(pulled(ParameterClient(cluster.worker(entry).url, "r"), "w") == Floats(3000, static_cast<float>(count)));
}
