// A parameter that is deleted and made anew under its name, and shards without elements or with parts of rows: no
// worker takes one for the other.
#include <doctest/doctest.h>
#include <signal.h>

#include "tests/support/fleets/parameters.hpp"
#include "tests/support/held_port.hpp"
#include "tests/support/scratch_directory.hpp"

using namespace chorus::testing;

namespace {

using Floats = std::vector<float>;
using Rows = std::vector<std::uint64_t>;

struct Fleet {
  Fleet() {
    for (std::string const id : {"w0", "w1", "w2"})
      cluster.add_worker(id, "host=h0", {"--checkpoint-directory", disk / "."});
    cluster.make_group("g");
  }
  void make(std::string const& request, std::string const& name = "w") {
    auto const made = cluster.coordinator.put("/v1/parameters/" + name, R"({"group":"g",)" + request + "}");
    REQUIRE_MESSAGE(made.status == 201, made.body);
  }
  void remove(std::string const& name = "w") {
    REQUIRE(cluster.coordinator.erase("/v1/parameters/" + name).status == 204);
  }
  Answer pull(std::size_t worker, std::string const& name = "w") {
    return ParameterClient(cluster.worker(worker).url, "reader").pull(name);
  }
  Floats values(std::string const& name = "w") { return ParameterClient::values<float>(pull(0, name).body); }
  // Every worker learns where the parameter is.
  void pull_everywhere() {
    for (std::size_t i = 0; i < cluster.size(); ++i) REQUIRE(pull(i).status == 200);
  }
  // Repeated while the answer asks for that.
  Answer push_rows(std::size_t worker, Rows const& rows, Floats const& gradient, std::string const& name = "w") {
    Answer answer;
    REQUIRE(eventually([&] {
      answer =
          ParameterClient(cluster.worker(worker).url, "c")
              .post("/v1/parameters/" + name + "/rows/gradient",
                    ParameterClient::bytes(rows) + ParameterClient::bytes(gradient),
                    {{"Chorus-Client", "c"}, {"Chorus-Sequence", "0"}, {"Chorus-Rows", std::to_string(rows.size())}});
      return answer.code() != "unavailable";
    }));
    return answer;
  }

  ScratchDirectory const disk;
  Cluster cluster{0};
};

// The push with number 0 of a client per worker, repeated as the answers ask for.
Answer push_until_taken(std::string const& url, std::string const& client, std::string const& bytes) {
  Answer answer;
  REQUIRE(eventually([&] {
    answer = ParameterClient(url, client).push("w", bytes);
    return answer.code() != "unavailable";
  }));
  return answer;
}

}  // namespace

TEST_CASE("a push of rows to the successor of a parameter with more shards is applied to all rows") {
  Fleet f;
  f.make(R"("shape":[12,1],"shards":3)");
  f.pull_everywhere();
  f.remove();
  f.make(R"("shape":[12,1],"shards":1)");
  Rows const all{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  for (std::size_t i = 0; i < f.cluster.size(); ++i) {
    auto const answer = f.push_rows(i, all, Floats(12, 10));
    CHECK_MESSAGE(answer.status == 200, answer.body);
    CHECK(answer.header("Chorus-Duplicate") == (i == 0 ? "false" : "true"));
    CHECK(f.values() == Floats(12, 10));
  }
}

TEST_CASE("rows that the former parameter's shards cut are pulled and pushed at a worker that knew it") {
  Fleet f;
  f.make(R"("shape":[2,3],"shards":3)");
  f.pull_everywhere();
  f.remove();
  f.make(R"("shape":[2,3],"shards":2)");
  for (std::size_t i = 0; i < f.cluster.size(); ++i) {
    ParameterClient const reader(f.cluster.worker(i).url, "reader");
    Answer pulled;
    CHECK_MESSAGE(
        eventually([&] {
          pulled = reader.post("/v1/parameters/w/rows", ParameterClient::bytes(Rows{1}), {{"Chorus-Rows", "1"}});
          return pulled.code() != "unavailable";
        }),
        pulled.body);
    CHECK_MESSAGE(pulled.status == 200, pulled.body);
  }
  f.remove();
  f.make(R"("shape":[2,3],"shards":3)");
  f.pull_everywhere();
  f.remove();
  f.make(R"("shape":[2,3],"shards":2)");
  for (std::size_t i = 0; i < f.cluster.size(); ++i) {
    auto const pushed = f.push_rows(i, {1}, {4, 5, 6});
    CHECK_MESSAGE(pushed.status == 200, pushed.body);
  }
  CHECK(f.values() == Floats{0, 0, 0, 4, 5, 6});
}

TEST_CASE("a worker that knew the parameter before serves its successor of another size and dtype") {
  Fleet f;
  f.make(R"("shape":[4])");
  f.pull_everywhere();
  f.remove();
  f.make(R"("shape":[2,3],"dtype":"i32")");
  for (std::size_t i = 0; i < f.cluster.size(); ++i) {
    auto const pulled = f.pull(i);
    CHECK_MESSAGE(pulled.status == 200, pulled.body);
    CHECK(pulled.header("Tensor-Dtype") == "i32");
    CHECK(pulled.header("Tensor-Shape") == "2,3");
    CHECK(f.cluster.worker(i).get("/v1/parameters/w").json().at("dtype") == "i32");
  }
  f.remove();
  f.make(R"("shape":[6])");
  for (std::size_t i = 0; i < f.cluster.size(); ++i) {
    auto const id = "c" + std::to_string(i);
    auto const pushed = push_until_taken(f.cluster.worker(i).url, id, ParameterClient::bytes(Floats(6, 1)));
    CHECK_MESSAGE(pushed.status == 200, pushed.body);
  }
  CHECK(f.values() == Floats(6, 3));
}

TEST_CASE("settings of the successor hold for a push at a worker that knew the former parameter") {
  Fleet f;
  f.make(R"("shape":[6],"shards":3)");
  f.pull_everywhere();
  f.remove();
  f.make(R"("shape":[6],"shards":3,"nonfinite":"reject")");
  Floats gradient(6, 1);
  gradient[5] = std::numeric_limits<float>::infinity();
  auto const refused = push_until_taken(f.cluster.worker(0).url, "c", ParameterClient::bytes(gradient));
  CHECK(refused.code() == "non_finite");
  CHECK(f.values() == Floats(6));
}

TEST_CASE("a coordinator that starts again without a journal makes parameters anew, and no old value is left") {
  HeldPort const port;
  auto const start = [&] {
    return std::make_unique<Service>("coordinator", std::vector<std::string>{binary("chorus-coordinator"), "--port",
                                                                             port.text(), "--log-level", "error"});
  };
  auto coordinator = start();
  std::vector<std::unique_ptr<Service>> workers;
  for (std::string const id : {"w0", "w1"})
    workers.push_back(
        std::make_unique<Service>(id, std::vector<std::string>{binary("chorus-worker"), "--port", "0", "--coordinator",
                                                               coordinator->url, "--id", id, "--log-level", "error"}));
  auto const make_group = [&] {
    REQUIRE(
        eventually([&] { return coordinator->put("/v1/groups/g", R"({"workers":["w0","w1"]})").status / 100 == 2; }));
  };
  auto const make = [&](std::string const& settings) {
    return coordinator->put("/v1/parameters/w", R"({"group":"g","shape":[6],"replicas":2)" + settings + "}");
  };
  make_group();
  REQUIRE(make("").status == 201);
  for (int i = 0; i < 3; ++i)
    REQUIRE(ParameterClient(workers[0]->url, "c" + std::to_string(i))
                .push("w", ParameterClient::bytes(Floats(6, 1)))
                .status == 200);
  coordinator->process.signal(SIGKILL);
  coordinator->process.wait();
  coordinator = start();
  make_group();
  auto const made = make(R"(,"optimizer":{"name":"sgd","learning_rate":1})");
  REQUIRE_MESSAGE(made.status == 201, made.body);
  auto const value_at = [&](std::size_t worker) {
    return ParameterClient::values<float>(ParameterClient(workers[worker]->url, "reader").pull("w").body);
  };
  for (std::size_t i = 0; i < workers.size(); ++i) CHECK(value_at(i) == Floats(6, 0));
  auto const pushed = push_until_taken(workers[1]->url, "c0", ParameterClient::bytes(Floats(6, 1)));
  CHECK_MESSAGE(pushed.status == 200, pushed.body);
  for (std::size_t i = 0; i < workers.size(); ++i) CHECK(value_at(i) == Floats(6, -1));
}

TEST_CASE("rows that shards cut, or that have no elements, are refused by every worker, and no part is applied") {
  Fleet f;
  f.make(R"("shape":[2,2],"shards":3)");
  f.make(R"("shape":[5,0])", "nothing");
  for (std::size_t i = 0; i < f.cluster.size(); ++i) {
    CHECK(f.push_rows(i, {0}, {1, 1}).code() == "unsupported");
    CHECK(f.push_rows(i, {0}, {}, "nothing").code() == "unsupported");
    CHECK(f.push_rows(i, {}, {}, "nothing").code() == "unsupported");
    auto const pulled = ParameterClient(f.cluster.worker(i).url, "c")
                            .post("/v1/parameters/w/rows", ParameterClient::bytes(Rows{0}), {{"Chorus-Rows", "1"}});
    CHECK(pulled.code() == "unsupported");
  }
  CHECK(f.values() == Floats(4));
  auto const whole = ParameterClient(f.cluster.worker(0).url, "c").push("w", ParameterClient::bytes(Floats(4, 5)));
  CHECK(whole.header("Chorus-Duplicate") == "false");
  CHECK(f.values() == Floats(4, 5));
}

TEST_CASE("the norm of repeated rows is that of their sums, with any number of shards") {
  Fleet f;
  for (std::string const shards : {"1", "2", "3"}) {
    INFO(shards);
    f.make(R"("shape":[6,1],"optimizer":{"name":"sgd","learning_rate":1,"clip_norm":1},"shards":)" + shards);
    CHECK(f.push_rows(0, {0, 0, 5}, {3, 3, 8}).status == 200);
    CHECK(f.values() == Floats{-0.6F, 0, 0, 0, 0, -0.8F});  // (6, 8) has the norm 10
    f.remove();
  }
}

TEST_CASE("parameters and shards without elements are in checkpoints, and come back with any number of shards") {
  Fleet f;
  f.make(R"("shape":[3],"shards":8)");
  f.make(R"("shape":[0])", "nothing");
  f.make(R"("shape":[0,4],"optimizer":{"name":"adam"},"shards":2)", "narrow");
  f.make(R"("shape":[2,3],"optimizer":{"name":"adam"},"shards":8)", "cut");
  f.make(R"("shape":[4],"shards":2)", "good");
  REQUIRE(ParameterClient(f.cluster.worker(0).url, "c").push("w", ParameterClient::bytes(Floats{1, 2, 3})).status ==
          200);
  auto const written = f.cluster.coordinator.post("/v1/checkpoints", R"({"name":"c"})");
  REQUIRE_MESSAGE(written.status == 201, written.body);
  for (std::string const name : {"w", "nothing", "narrow", "cut", "good"}) f.remove(name);
  std::string const from = R"(,"checkpoint":{"name":"c"})";
  for (std::string const shards : {"8", "2", "5"}) {
    INFO(shards);
    f.make(R"("shape":[3],"shards":)" + shards + from);
    f.make(R"("shape":[0],"shards":)" + shards + from, "nothing");
    f.make(R"("shape":[0,4],"optimizer":{"name":"adam"},"shards":)" + shards + from, "narrow");
    f.make(R"("shape":[2,3],"optimizer":{"name":"adam"},"shards":)" + shards + from, "cut");
    f.make(R"("shape":[4],"shards":)" + shards + from, "good");
    CHECK(f.values() == Floats{1, 2, 3});
    CHECK(f.values("nothing").empty());
    for (std::string const name : {"w", "nothing", "narrow", "cut", "good"}) f.remove(name);
  }
}
