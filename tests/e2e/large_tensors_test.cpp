// Tensors of GiB are uploaded, reduced, read and deleted, and no heartbeat waits for that.
#include <doctest/doctest.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <fstream>
#include <future>
#include <thread>

#include "tests/support/fleets/cluster.hpp"
#include "tests/support/fleets/liveness.hpp"
#include "tests/support/raw_http.hpp"

using namespace chorus::testing;
using namespace std::chrono_literals;
namespace json = boost::json;

namespace {

constexpr std::uint64_t mebi = 1 << 20;
constexpr std::chrono::milliseconds longest_allowed{50};

std::uint64_t available_bytes() {
  std::ifstream file("/proc/meminfo");
  std::uint64_t kibi = 0;
  for (std::string word; file >> word;)
    if (word == "MemAvailable:") file >> kibi;
  struct statvfs shm {};
  auto const shared = statvfs("/dev/shm", &shm) == 0 ? std::uint64_t{shm.f_bavail} * shm.f_frsize : 0;
  return std::min(kibi * 1024, shared);
}

// Returns 4 GiB, or less to leave three quarters of the machine's memory to others: two workers have two versions each.
std::uint64_t tensor_bytes() { return std::clamp(available_bytes() / 16 / mebi, std::uint64_t{64}, 4096UL) * mebi; }

std::unique_ptr<httplib::Client> client_of(Service const& service) {
  auto client = std::make_unique<httplib::Client>(service.url);
  client->set_read_timeout(300s);
  client->set_write_timeout(300s);
  return client;
}

// Puts f32 zeros, so that no sum is rounded.
int put(Service const& worker, std::string const& name, std::uint64_t bytes) {
  std::string const zeros(mebi, '\0');
  httplib::Headers const fields{{"Tensor-Dtype", "f32"}, {"Tensor-Shape", std::to_string(bytes / 4)}};
  auto const send = [&](std::size_t offset, std::size_t length, httplib::DataSink& sink) {
    static_cast<void>(offset);
    return sink.write(zeros.data(), std::min(length, zeros.size()));
  };
  auto const answer = client_of(worker)->Put("/v1/tensors/" + name, fields, bytes, send, "application/octet-stream");
  return answer ? answer->status : 0;
}

// Returns the number of received bytes, or 0 if the answer has no digest.
std::uint64_t get(Service const& worker, std::string const& name) {
  std::uint64_t bytes = 0;
  bool has_digest = false;
  auto const look = [&](httplib::Response const& answer) {
    has_digest = answer.has_header("Repr-Digest");
    return true;
  };
  auto const take = [&](char const*, std::size_t length) {
    bytes += length;
    return true;
  };
  httplib::Headers const fields{{"Want-Repr-Digest", "sha-256=1"}};
  auto const answer = client_of(worker)->Get("/v1/tensors/" + name, fields, look, take);
  return answer && has_digest ? bytes : 0;
}

struct Fleet {
  Fleet() : coordinator("coordinator", {binary("chorus-coordinator"), "--port", "0", "--lease-ms", "1000"}) {
    for (std::string const id : {"w0", "w1", "idle"})
      workers.push_back(std::make_unique<Service>(
          id, std::vector<std::string>{binary("chorus-worker"), "--port", "0", "--coordinator", coordinator.url, "--id",
                                       id, "--locality", "host=h"}));
    REQUIRE(
        eventually([&] { return coordinator.put("/v1/groups/g", R"({"workers":["w0","w1"]})").status / 100 == 2; }));
  }
  template <class Act>
  void both(Act const& act) {
    auto other = std::async(std::launch::async, [&] { act(*workers[1]); });
    act(*workers[0]);
    other.get();
  }
  // True if the coordinator has ever lost the worker.
  bool was_lost(std::size_t i) { return workers[i]->metric("chorus_lease_renewals_total{result=\"forgotten\"") > 0; }

  Service coordinator;
  std::vector<std::unique_ptr<Service>> workers;
};

}  // namespace

TEST_CASE("with tensors of GiB, workers and coordinator answer within 50 ms, and no lease is lost") {
  auto const bytes = tensor_bytes();
  MESSAGE("tensors of " << bytes / mebi << " MiB");
  Fleet f;
  Liveness liveness({&f.coordinator, f.workers[0].get(), f.workers[1].get()});

  liveness.now_during("announced PUT");
  {
    RawConnection connection(f.workers[0]->port());
    connection.send("PUT /v1/tensors/never HTTP/1.1\r\nHost: localhost\r\nTensor-Dtype: u8\r\nTensor-Shape: " +
                    std::to_string(bytes) + "\r\nContent-Length: " + std::to_string(bytes) + "\r\n\r\nx");
    liveness.wait_for_rounds(100);
    CHECK(f.workers[0]->metric("process_resident_memory_bytes") < static_cast<double>(256 * mebi));
  }
  liveness.now_during("PUT");
  f.both([&](Service const& worker) { CHECK(put(worker, "x", bytes) == 201); });
  liveness.now_during("launched all_reduce");
  for (int i = 0; i < 2; ++i) {
    auto const ended = f.coordinator.post("/v1/collectives?wait=120s",
                                          R"({"group":"g","op":"all_reduce","tensor":"x","timeout_ms":120000})");
    CHECK_MESSAGE(ended.body.find(R"("state":"succeeded")") != std::string::npos, ended.body);
  }
  liveness.now_during("call of members");
  f.both([&](Service const& worker) {
    auto const answer = worker.post("/v1/groups/g/all_reduce", R"({"tensor":"x","reduce":"avg","timeout_ms":120000})");
    CHECK_MESSAGE(answer.status == 200, answer.body);
  });
  liveness.now_during("GET");
  CHECK(get(*f.workers[0], "x") == bytes);
  liveness.now_during("DELETE");
  f.both([&](Service const& worker) { CHECK(worker.erase("/v1/tensors/x").status == 204); });
  liveness.wait_for_rounds(100);

  check_liveness(liveness, longest_allowed, longest_allowed);
  if (f.was_lost(2)) {
    MESSAGE("an idle worker was lost, too: the machine is too busy for leases of a second");
    return;
  }
  CHECK_FALSE(f.was_lost(0));
  CHECK_FALSE(f.was_lost(1));
  auto const group = f.coordinator.get("/v1/groups/g").json();
  CAPTURE(json::serialize(group));
  CHECK(group.at("epoch").to_number<int>() == 1);
  CHECK(group.at("state").as_string() == "ready");
}
