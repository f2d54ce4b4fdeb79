// Collectives over tensors on GPUs, on some ranks or on all of them.
#include <doctest/doctest.h>

#include <sstream>

#include "http/json/json.hpp"
#include "worker/service/testing/doubles.hpp"
#include "worker/service/testing/live_group.hpp"

using namespace chorus;
using namespace chorus::service;
using namespace chorus::service::testing;
using devices::GpuErrc;

namespace {

using Floats = std::vector<float>;

constexpr std::uint64_t arena_bytes = 12 << 20;

// Every rank has two GPUs, and a tensor "x" with all elements rank + 1 on the given device.
class GpuGroup {
 public:
  explicit GpuGroup(std::vector<std::string> devices, std::size_t count = 1000)
      : group(
            devices.size(), [](WorkerOptions& options) { options.gpu_limits.arena_bytes = arena_bytes; },
            [this](std::size_t) {
              auto made = make_doubles(2);
              gpus.push_back(made.gpus);
              return std::move(made.found);
            }) {
    for (std::size_t rank = 0; rank < devices.size(); ++rank) put(rank, "x", devices[rank], count);
    group.assign(1);
  }

  void put(std::size_t rank, std::string const& name, std::string const& device, std::size_t count) {
    put(rank, name, device, Floats(count, static_cast<float>(rank + 1)));
  }
  void put(std::size_t rank, std::string const& name, std::string const& device, Floats const& values) {
    std::string const bytes(reinterpret_cast<char const*>(values.data()), values.size() * sizeof(float));
    auto const answer = group.at(rank).put(
        "/v1/tensors/" + name, bytes,
        {{"Tensor-Dtype", "f32"}, {"Tensor-Shape", std::to_string(values.size())}, {"Tensor-Device", device}},
        "application/octet-stream");
    REQUIRE_MESSAGE(answer.status / 100 == 2, answer.body);
  }
  std::string device_of(std::size_t rank, std::string const& name = "x") {
    return group.at(rank).head("/v1/tensors/" + name).header("Tensor-Device");
  }
  Floats values_of(std::size_t rank, std::string const& name = "x") { return group.at(rank).get_tensor<float>(name); }

  std::vector<std::vector<devices::testing::GpuDouble*>> gpus;  // by rank
  LiveGroup group;
};

// Bytes that the worker's two GPUs have copied in this direction.
double copied(LiveWorker& worker, std::string const& direction) {
  auto const text = worker.metrics();
  double sum = 0;
  for (std::string const device : {"cuda:0", "cuda:1"}) {
    auto const series = "chorus_gpu_copied_bytes_total{device=\"" + device + "\",direction=\"" + direction + "\"} ";
    auto const at = text.find(series);
    REQUIRE(at != std::string::npos);
    double bytes = 0;
    std::istringstream(text.substr(at + series.size(), 40)) >> bytes;
    sum += bytes;
  }
  return sum;
}

void check_all_ok(std::vector<Answer> const& answers) {
  for (auto const& answer : answers) CHECK_MESSAGE(answer.status == 200, answer.body);
}

}  // namespace

TEST_CASE("a call between members that lie on GPUs, on some or on all: the sum is on each one's device") {
  for (auto const& devices : {std::vector<std::string>{"cuda:0", "cuda:0", "cuda:1"}, {"cuda:1", "cpu", "cuda:0"}}) {
    GpuGroup g(devices, 5000);
    check_all_ok(g.group.all_reduce(R"({"tensor":"x"})"));
    for (std::size_t rank = 0; rank < devices.size(); ++rank) {
      CHECK((g.values_of(rank) == g.group.sum(5000)));
      CHECK(g.device_of(rank) == devices[rank]);
      CHECK(g.group.at(rank).version_of("x") == 2);
    }
  }
}

TEST_CASE("a launched collective over a GPU and a host gives the same digests, and is dropped or committed as one") {
  GpuGroup g({"cuda:0", "cpu"});
  auto const launched = g.group.run(7, [](api::RunRequest& request) { request.digests = true; });
  check_all_ok(launched);
  CHECK(launched[0].json().at("output_digest") == launched[1].json().at("output_digest"));
  CHECK(launched[0].json().at("input_digest") != launched[1].json().at("input_digest"));
  CHECK((g.values_of(0) == Floats(1000, 1)));
  CHECK(g.group.commit(0, 7).status == 200);
  CHECK(g.group.abort(1, 7).status == 204);
  CHECK((g.values_of(0) == g.group.sum()));
  CHECK(g.device_of(0) == "cuda:0");
  CHECK((g.values_of(1) == Floats(1000, 2)));
}

TEST_CASE("in place, on the GPU's own memory") {
  GpuGroup g({"cuda:0", "cuda:1"});
  check_all_ok(g.group.all_reduce(R"({"tensor":"x","in_place":true})"));
  for (std::size_t rank = 0; rank < 2; ++rank) CHECK((g.values_of(rank) == g.group.sum()));
  CHECK(g.device_of(1) == "cuda:1");
}

TEST_CASE("an average over contributions is divided in place") {
  GpuGroup g({"cuda:0", "cpu", "cuda:1"});
  check_all_ok(g.group.all_reduce(R"({"tensor":"x","reduce":"avg","contributions":12})"));
  for (std::size_t rank = 0; rank < 3; ++rank) CHECK((g.values_of(rank) == Floats(1000, 0.5F)));
}

TEST_CASE("a result that a rank only gets goes where its last version is, and an output where the input is") {
  GpuGroup g({"cuda:0", "cuda:1", "cpu"});
  check_all_ok(g.group.call("broadcast", R"({"tensor":"x","root":2})"));
  CHECK((g.values_of(0) == Floats(1000, 3)));
  CHECK(g.device_of(0) == "cuda:0");
  check_all_ok(g.group.call("all_gather", R"({"tensor":"x","output":"y"})"));
  CHECK(g.values_of(1, "y").size() == 3000);
  CHECK(g.device_of(1, "y") == "cuda:1");
  CHECK(g.device_of(2, "y") == "cpu");
}

TEST_CASE("a barrier asks no GPU") {
  GpuGroup g({"cuda:0", "cpu"});
  for (auto* gpu : g.gpus[0]) gpu->fail_after(0, GpuErrc::failed);
  check_all_ok(g.group.call("barrier", "{}"));
}

TEST_CASE("many tensors in one call are packed on their GPU; they lie on one device") {
  GpuGroup g({"cuda:0", "cpu"});
  for (std::size_t rank = 0; rank < 2; ++rank)
    for (int i = 0; i < 5; ++i) g.put(rank, "t" + std::to_string(i), rank == 0 ? "cuda:1" : "cpu", 100u + i);
  std::string const list = R"("tensors":["t0","t1","t2","t3","t4"])";
  check_all_ok(g.group.all_reduce("{" + list + "}"));
  CHECK((g.values_of(0, "t3") == g.group.sum(103)));
  CHECK(g.device_of(0, "t3") == "cuda:1");
  g.put(0, "t2", "cuda:0", 102);
  auto const refused = g.group.at(0).post("/v1/groups/g/all_reduce", "{" + list + "}");
  CHECK(refused.code() == "invalid_field");
  CHECK(refused.body.find("/tensors/2") != std::string::npos);
  CHECK(refused.body.find("lies on cuda:0, the first one on cuda:1") != std::string::npos);
}

TEST_CASE("several tensors of one name, one per GPU and one in the host's memory: reduced on a GPU, travel once") {
  GpuGroup g({"cpu", "cpu"});
  for (std::size_t rank = 0; rank < 2; ++rank) {
    char const* const devices[] = {"cuda:1", "cuda:0", "cpu", "cuda:1"};
    for (std::size_t part = 0; part < 4; ++part)
      g.put(rank, "grad%2F" + std::to_string(part), rank == 0 ? devices[part] : "cpu",
            Floats(3000, static_cast<float>(10 * rank + part + 1)));
  }
  check_all_ok(g.group.all_reduce(R"({"tensor":"grad"})"));
  for (std::size_t rank = 0; rank < 2; ++rank)
    for (int part = 0; part < 4; ++part)
      CHECK((g.values_of(rank, "grad%2F" + std::to_string(part)) == Floats(3000, 60)));
  CHECK(g.device_of(0, "grad%2F1") == "cuda:0");
  CHECK(g.device_of(0, "grad%2F2") == "cpu");
  check_all_ok(g.group.all_reduce(R"({"tensor":"grad","reduce":"avg"})"));
  CHECK((g.values_of(0, "grad%2F3") == Floats(3000, 60)));
  g.put(0, "grad%2F0", "cuda:0", Floats(3000, 5));
  check_all_ok(g.group.call("broadcast", R"({"tensor":"grad"})"));
  for (std::size_t rank = 0; rank < 2; ++rank) CHECK((g.values_of(rank, "grad%2F2") == Floats(3000, 5)));
}

TEST_CASE("several tensors of one name on GPUs that see each other: summed in slices, no byte through the host") {
  GpuGroup g({"cpu"});
  for (auto* const one : g.gpus[0])
    for (auto const* const other : g.gpus[0])
      if (one != other) one->neighbour(other->info().uuid);
  constexpr std::size_t count = 300'000;  // more than one GPU does alone
  for (std::size_t part = 0; part < 3; ++part)
    g.put(0, "grad%2F" + std::to_string(part), part == 1 ? "cuda:0" : "cuda:1",
          Floats(count, static_cast<float>(part + 1)));
  auto const before = copied(g.group.at(0), "in") + copied(g.group.at(0), "out");
  check_all_ok(g.group.all_reduce(R"({"tensor":"grad"})"));
  CHECK(copied(g.group.at(0), "in") + copied(g.group.at(0), "out") == before);
  CHECK(copied(g.group.at(0), "peer") > static_cast<double>(count * sizeof(float)));
  for (int part = 0; part < 3; ++part) CHECK((g.values_of(0, "grad%2F" + std::to_string(part)) == Floats(count, 6)));
}

TEST_CASE("a GPU that has no room for the result is a refusal that names the rank, and the input stays") {
  GpuGroup g({"cuda:0", "cpu"}, 1000);
  constexpr std::size_t count = 7 << 18;  // two such tensors are larger than the arena
  for (std::size_t rank = 0; rank < 2; ++rank) g.put(rank, "big", rank == 0 ? "cuda:0" : "cpu", count);
  auto const answers = g.group.all_reduce(R"({"tensor":"big","timeout_ms":20000})");
  CHECK(answers[0].code() == "unavailable");
  CHECK(answers[0].json().at("ranks").at(0) == 0);
  CHECK(answers[0].body.find("of the arena's 12582912 in use") != std::string::npos);
  CHECK(answers[1].status / 100 != 2);
  CHECK(g.values_of(0, "big").front() == 1);
}

TEST_CASE("a device that fails in the middle: every rank fails, and no tensor has moved") {
  for (int call : {0, 5, 17}) {
    INFO(call);
    GpuGroup g({"cuda:0", "cpu", "cuda:1"}, 50000);
    check_all_ok(g.group.all_reduce(R"({"tensor":"x"})"));  // later failures to lend memory would only make the run
                                                            // stage it
    g.gpus[0][0]->fail_after(call, GpuErrc::failed);
    auto const answers = g.group.all_reduce(R"({"tensor":"x","timeout_ms":20000})");
    g.gpus[0][0]->fail_after(-1, GpuErrc::failed);
    for (auto const& answer : answers) {
      CHECK(answer.status / 100 != 2);
      CHECK_MESSAGE(answer.body.find("the double was told to fail") != std::string::npos, answer.body);
    }
    for (std::size_t rank = 0; rank < 3; ++rank) CHECK((g.values_of(rank) == Floats(50000, 6)));
  }
}

TEST_CASE("the work of runs on a GPU is counted") {
  GpuGroup g({"cuda:0", "cuda:1"}, 100000);
  check_all_ok(g.group.all_reduce(R"({"tensor":"x"})"));
  auto const text = g.group.at(0).metrics();
  CHECK(text.find("chorus_gpu_kernels_total{device=\"cuda:0\"} 0\n") == std::string::npos);
  CHECK(text.find("chorus_gpu_kernels_total{device=\"cuda:1\"} 0\n") != std::string::npos);
  CHECK(text.find("chorus_reduce_bytes_total{device=\"cuda\",dtype=\"f32\"}") != std::string::npos);
}
