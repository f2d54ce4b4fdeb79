// Messages between programs on the C++ API with a real coordinator: one echoes what it gets, and is killed.
#include <doctest/doctest.h>
#include <signal.h>

#include <numeric>

#include "tests/support/cluster.hpp"
#include "tests/support/mentions.hpp"
#include "worker/api/worker.hpp"
#include "worker/engine/failure/errc.hpp"

using namespace chorus::testing;
using chorus::engine::EngineErrc;
using chorus::testing::mentions;

TEST_CASE("messages of any size come back from another process, and a process that is killed is named") {
  for (bool const shares_memory : {true, false}) {
    CAPTURE(shares_memory);
    Cluster cluster(0);
    chorus::WorkerOptions options;
    options.coordinator = cluster.coordinator.url;
    options.id = "a";
    options.shares_memory = shares_memory;
    options.log_level = "off";
    auto worker = chorus::Worker::start(options).value();
    Process other({binary("echoing_member"), cluster.coordinator.url, "b"});
    REQUIRE(eventually(
        [&] { return cluster.coordinator.put("/v1/groups/g", R"({"workers":["a","b"]})").status / 100 == 2; }));
    auto group = worker.join("g", std::chrono::steady_clock::now() + std::chrono::seconds(60)).value();

    for (std::size_t const bytes : {0, 1, 4, 1024, 262144, 300000, 8 << 20}) {
      CAPTURE(bytes);
      std::vector<std::uint8_t> sent(bytes), got(bytes);
      std::iota(sent.begin(), sent.end(), static_cast<std::uint8_t>(bytes));
      REQUIRE(group.send(sent, 1, {.tag = 1}).has_value());
      auto const received = group.recv(got, 1, {.tag = 2});
      REQUIRE(received.has_value());
      CHECK(received->bytes == bytes);
      CHECK(received->source == 1);
      CHECK(got == sent);
    }

    std::vector<std::uint8_t> got(1);
    auto const waiting = group.recv_async(got, 1, {.tag = 3});
    other.signal(SIGKILL);
    auto const begun = std::chrono::steady_clock::now();
    auto const status = waiting.wait();
    CHECK(std::chrono::steady_clock::now() - begun < std::chrono::seconds(10));  // its timeout is 30 s
    other.wait();
    REQUIRE(status.has_error());
    INFO(status.error().detail);
    CHECK(status.error().code == EngineErrc::peer_lost);
    CHECK(mentions(status.error().detail, "rank 1 (b)"));
    CHECK(group.culprits() == std::vector<std::uint32_t>{1});
    CHECK(group.send(got, 1).has_error());
  }
}
