// Messages between programs on the C++ API with a real coordinator: one echoes what it gets, and is killed.
#include <doctest/doctest.h>
#include <signal.h>

#include <numeric>
#include <optional>

#include "tests/support/fleets/cluster.hpp"
#include "tests/support/mentions.hpp"
#include "worker/api/worker.hpp"
#include "worker/engine/failure/errc.hpp"

using namespace chorus::testing;
using chorus::engine::EngineErrc;
using chorus::testing::mentions;

namespace {

// This process and another one, which echoes what it gets with tag 1, with tag 2.
struct WithEcho {
  explicit WithEcho(bool shares_memory)
      : worker(chorus::Worker::start(options(cluster, shares_memory)).value()),
        other({binary("echoing_member"), cluster.coordinator.url, "b"}) {
    REQUIRE(eventually(
        [&] { return cluster.coordinator.put("/v1/groups/g", R"({"workers":["a","b"]})").status / 100 == 2; }));
    group.emplace(worker.join("g", std::chrono::steady_clock::now() + std::chrono::seconds(60)).value());
  }

  static chorus::WorkerOptions options(Cluster const& cluster, bool shares_memory) {
    chorus::WorkerOptions options;
    options.coordinator = cluster.coordinator.url;
    options.id = "a";
    options.shares_memory = shares_memory;
    options.log_level = "off";
    return options;
  }

  Cluster cluster{0};
  chorus::Worker worker;
  Process other;
  std::optional<chorus::JoinedGroup> group;
};

}  // namespace

TEST_CASE("messages of any size come back from another process, and a process that is killed is named") {
  for (bool const shares_memory : {true, false}) {
    CAPTURE(shares_memory);
    WithEcho members(shares_memory);
    auto& group = *members.group;
    auto& other = members.other;

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

TEST_CASE("small messages come back in order until the other process is killed, which is then named") {
  for (bool const shares_memory : {true, false}) {
    CAPTURE(shares_memory);
    WithEcho members(shares_memory);
    auto& group = *members.group;
    std::uint32_t came_back = 0;
    auto const send_and_receive = [&]() -> chorus::Status {
      std::vector<std::uint32_t> sent(1 + came_back % 100, came_back), got(100);
      if (auto status = group.send(sent, 1, {.tag = 1}); status.has_error()) return status;
      auto const received = group.recv(got, 1, {.tag = 2});
      if (received.has_error()) return received.error();
      got.resize(sent.size());
      CHECK(received->bytes == sent.size() * sizeof(std::uint32_t));
      CHECK(got == sent);
      return chorus::ok();
    };
    auto status = chorus::ok();
    while (status.has_value()) {
      status = send_and_receive();
      if (status.has_value() && ++came_back == 300) members.other.signal(SIGKILL);
    }
    members.other.wait();
    CHECK(came_back >= 300);
    INFO(status.error().detail);
    CHECK(status.error().code == EngineErrc::peer_lost);
    CHECK(mentions(status.error().detail, "rank 1 (b)"));
    CHECK(group.culprits() == std::vector<std::uint32_t>{1});
  }
}
