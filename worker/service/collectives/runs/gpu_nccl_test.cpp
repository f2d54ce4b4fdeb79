// Several tensors of one name, one per GPU of a worker: reduced by NCCL if additions may be in any order.
#include <doctest/doctest.h>

#include <chrono>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "worker/devices/nccl/testing/double_library.hpp"
#include "worker/service/testing/doubles.hpp"
#include "worker/service/testing/live_group.hpp"

using namespace chorus;
using namespace chorus::service;
using namespace chorus::service::testing;
using devices::testing::NcclDouble;

namespace {

using Floats = std::vector<float>;

constexpr std::size_t count = 300'000;  // more than one GPU does alone
// Their sum is 0 in this order, and 1 in reverse order, in which the NCCL double adds.
constexpr float parts[] = {1, 1e8F, -1e8F};
constexpr float in_order = 0, by_nccl = 1;

// One worker with three GPUs, which do not see each other's memory.
class Rank {
 public:
  explicit Rank(std::function<void(WorkerOptions&)> const& change = {})
      : group(
            1,
            [&change](WorkerOptions& options) {
              options.gpu_limits.arena_bytes = 24 << 20;
              options.nccl_library = NCCL_DOUBLE;
              if (change) change(options);
            },
            [](std::size_t) { return make_doubles(3).found; }) {
    group.assign(1);
  }

  void put(std::string const& name, std::string const& device, Floats const& values) {
    std::string const bytes(reinterpret_cast<char const*>(values.data()), values.size() * sizeof(float));
    auto const answer = group.at(0).put(
        "/v1/tensors/" + name, bytes,
        {{"Tensor-Dtype", "f32"}, {"Tensor-Shape", std::to_string(values.size())}, {"Tensor-Device", device}},
        "application/octet-stream");
    REQUIRE_MESSAGE(answer.status / 100 == 2, answer.body);
  }
  // The three parts of a tensor, each on this GPU.
  void put_parts(std::string const& name, std::vector<int> const& gpus = {0, 1, 2}, std::size_t elements = count) {
    for (std::size_t part = 0; part < gpus.size(); ++part)
      put(name + "%2F" + std::to_string(part), "cuda:" + std::to_string(gpus[part]), Floats(elements, parts[part]));
  }
  // The first call starts making communicators; until they exist, calls do not use NCCL.
  void get_ready() {
    put_parts("first");
    call(R"({"tensor":"first"})");
    CHECK(value_of("first") == in_order);
    auto const deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!says("NCCL sums and spreads tensors of one name on cuda:0, cuda:1, cuda:2")) {
      REQUIRE(std::chrono::steady_clock::now() < deadline);
      std::this_thread::yield();
    }
    before_ = library.collectives();
  }
  [[nodiscard]] int collectives() const { return library.collectives() - before_; }  // calls of NCCL since get_ready()
  void call(std::string const& body) {
    auto const answer = group.at(0).post("/v1/groups/g/all_reduce", body);
    REQUIRE_MESSAGE(answer.status == 200, answer.body);
  }
  // The common value of all elements of all parts.
  float value_of(std::string const& name) {
    auto const first = group.at(0).get_tensor<float>(name + "%2F0");
    for (int part = 0; part < 3; ++part)
      CHECK((group.at(0).get_tensor<float>(name + "%2F" + std::to_string(part)) == Floats(first.size(), first.at(0))));
    return first.at(0);
  }
  bool says(std::string const& line) { return group.at(0).logged().find(line) != std::string::npos; }

  NcclDouble const library;
  LiveGroup group;

 private:
  int before_ = 0;
};

// Bytes that NCCL has moved on the device.
std::uint64_t nccl_bytes(LiveWorker& worker, std::string const& device) {
  auto const text = worker.metrics();
  auto const series = "chorus_gpu_copied_bytes_total{device=\"" + device + "\",direction=\"nccl\"} ";
  auto const at = text.find(series);
  REQUIRE(at != std::string::npos);
  double bytes = 0;
  std::istringstream(text.substr(at + series.size(), 40)) >> bytes;
  return static_cast<std::uint64_t>(bytes);
}

}  // namespace

TEST_CASE("one tensor per GPU is summed and spread by NCCL, also where GPUs do not see each other's memory") {
  Rank rank;
  CHECK(rank.says("NCCL 2.21.5 was found"));
  rank.get_ready();
  rank.put_parts("grad");
  auto const before = nccl_bytes(rank.group.at(0), "cuda:2");
  rank.call(R"({"tensor":"grad"})");
  CHECK(rank.collectives() == 2);
  CHECK(rank.value_of("grad") == by_nccl);
  CHECK(nccl_bytes(rank.group.at(0), "cuda:2") == before + 2 * count * sizeof(float));
  rank.put_parts("grad");
  rank.call(R"({"tensor":"grad","reduce":"avg"})");
  CHECK(rank.value_of("grad") == doctest::Approx(by_nccl / 3));
  // Numbers whose sum is too large for the dtype.
  constexpr float large = 0x1.8p127F;
  for (auto const* part : {"0", "1", "2"})
    rank.put("large%2F" + std::string(part), "cuda:" + std::string(part), Floats(count, large));
  auto const collectives = rank.collectives();
  rank.call(R"({"tensor":"large","reduce":"avg"})");
  CHECK(rank.value_of("large") == large);
  CHECK(rank.collectives() == collectives + 2);
}

TEST_CASE("where the order counts NCCL does not add, but spreads the result") {
  Rank rank;
  rank.get_ready();
  rank.put_parts("grad");
  rank.call(R"({"tensor":"grad","local_algorithm":"centralized"})");
  CHECK(rank.value_of("grad") == in_order);
  CHECK(rank.collectives() == 1);
  // A run as a coordinator launches it.
  std::uint64_t run = 7;
  for (std::string const local_algorithm : {"centralized", "ring"}) {
    rank.put_parts("x" + std::to_string(run));
    auto const answers = rank.group.run(run, [&](api::RunRequest& request) {
      request.tensor = "x" + std::to_string(run);
      request.version = 3;
      request.elements = count;
      request.parts = 3;
      request.local_algorithm = local_algorithm;
    });
    REQUIRE_MESSAGE(answers[0].status == 200, answers[0].body);
    CHECK(rank.group.commit(0, run).status == 200);
    CHECK(rank.value_of("x" + std::to_string(run)) == (local_algorithm == "ring" ? by_nccl : in_order));
    ++run;
  }
}

TEST_CASE("unsuitable tensors are reduced without NCCL: two on one GPU, small ones, the least of floats") {
  Rank rank;
  rank.get_ready();
  rank.put_parts("two", {0, 1, 1});
  rank.call(R"({"tensor":"two"})");
  CHECK(rank.value_of("two") == in_order);
  rank.put_parts("small", {0, 1, 2}, 1000);
  rank.call(R"({"tensor":"small"})");
  CHECK(rank.value_of("small") == in_order);
  CHECK(rank.collectives() == 0);
  rank.put_parts("least");
  rank.call(R"({"tensor":"least","reduce":"min"})");
  CHECK(rank.value_of("least") == parts[2]);
  CHECK(rank.collectives() == 1);  // NCCL has spread the result
}

TEST_CASE("an error of NCCL fails that call with its text and the device, no tensor moves, and NCCL is left alone") {
  for (bool const says : {true, false}) {
    Rank rank;
    rank.get_ready();
    rank.put_parts("grad");
    if (says)
      rank.library.jam(true);
    else
      rank.library.fail_after(2);
    auto const failed = rank.group.at(0).post("/v1/groups/g/all_reduce", R"({"tensor":"grad"})");
    CHECK(failed.status == 500);
    CHECK(failed.code() == "device_failed");
    CHECK(failed.json().at("ranks").at(0) == 0);
    auto const words = says ? "cuda:0: ncclReduce: remote process exited or there was a network error"
                            : "cuda:1: ncclReduce: unhandled cuda error";
    CHECK_MESSAGE(failed.body.find(words) != std::string::npos, failed.body);
    CHECK(rank.says("NCCL is not used any more: " + std::string(words)));
    for (int part = 0; part < 3; ++part)
      CHECK((rank.group.at(0).get_tensor<float>("grad%2F" + std::to_string(part)) == Floats(count, parts[part])));
    rank.group.assign(2);
    rank.call(R"({"tensor":"grad"})");
    CHECK(rank.value_of("grad") == in_order);
    CHECK(rank.collectives() == 0);
    CHECK(rank.library.stuck() == 0);
  }
}

TEST_CASE("the log says why NCCL is not used; a worker that requires it does not start without") {
  Rank off([](WorkerOptions& options) { options.nccl = NcclUse::off; });
  CHECK(off.says("NCCL is not used: --gpu-nccl off"));
  Rank missing([](WorkerOptions& options) { options.nccl_library = "libno-such-nccl.so.2"; });
  CHECK(missing.says("NCCL is not used: libno-such-nccl.so.2: cannot open shared object file"));
  CHECK_THROWS_WITH_AS(Rank([](WorkerOptions& options) {
                         options.nccl = NcclUse::on;
                         options.nccl_library = "libno-such-nccl.so.2";
                       }),
                       doctest::Contains("--gpu-nccl on: NCCL cannot be used: libno-such-nccl.so.2"),
                       std::runtime_error);
}
