// Joining: what is waited for, and what ends an epoch.
#include <doctest/doctest.h>

#include <future>

#include "tests/support/mentions.hpp"
#include "worker/api/testing/embedded_group.hpp"
#include "worker/engine/failure/errc.hpp"

using namespace chorus;
using namespace chorus::embedded::testing;
using chorus::testing::mentions;
using engine::EngineErrc;
using std::chrono::milliseconds;

namespace {

std::chrono::steady_clock::time_point in(milliseconds time) { return std::chrono::steady_clock::now() + time; }

void check_error(Result<JoinedGroup> const& joined, WorkerErrc code, std::string const& part) {
  REQUIRE(joined.has_error());
  CHECK(joined.error().code == code);
  INFO(joined.error().detail);
  CHECK(mentions(joined.error().detail, part));
}

// Every member was told that the members' calls differ.
void check_disagreement(std::vector<Status> const& ended) {
  for (auto const& status : ended) {
    REQUIRE(status.has_error());
    INFO(status.error().detail);
    CHECK(status.error().code == EngineErrc::plan_mismatch);
  }
}

}  // namespace

TEST_CASE("options that cannot be") {
  auto const refused = [](auto change, std::string const& part) {
    auto options = test_options("w0", "http://127.0.0.1:1");
    change(options);
    auto const worker = Worker::start(options);
    REQUIRE(worker.has_error());
    CHECK(worker.error().code == WorkerErrc::bad_argument);
    CHECK(mentions(worker.error().detail, part));
  };
  refused([](auto& o) { o.coordinator = "nonsense"; }, "coordinator");
  refused([](auto& o) { o.host = "no host"; }, "no host");
  refused([](auto& o) { o.id = "a b"; }, "a b");
  refused([](auto& o) { o.log_level = "loud"; }, "loud");
  refused([](auto& o) { o.link_checksum = "perhaps"; }, "perhaps");
}

TEST_CASE("a group that nobody made is not joined until the deadline, and one that is made meanwhile is") {
  FakeCoordinator coordinator;
  auto worker = Worker::start(test_options("w0", coordinator.url())).value();
  coordinator.assign("other", 1, {"w0"});
  check_error(worker.join("g", in(milliseconds(50))), WorkerErrc::not_assigned, "group g with w0");
  auto waiting = std::async(std::launch::async, [&] { return worker.join("g", soon()); });
  coordinator.assign("g", 7, {"w0"});
  auto group = waiting.get().value();
  CHECK(group.epoch() == 7);
  CHECK(group.size() == 1);
  CHECK(group.name() == "g");
  std::vector<float> x(3, 2);
  CHECK(group.all_reduce(x).has_value());
  CHECK(x == std::vector<float>(3, 2));
}

TEST_CASE("joins that cannot succeed say why") {
  auto alone = Worker::start(test_options("w0", "")).value();
  check_error(alone.join("g", soon()), WorkerErrc::no_coordinator, "without a coordinator");
  check_error(alone.join("a/b", soon()), WorkerErrc::bad_argument, "a/b");
  auto unheard = Worker::start(test_options("w0", "http://127.0.0.1:1")).value();
  check_error(unheard.join("g", in(milliseconds(100))), WorkerErrc::no_coordinator, "127.0.0.1:1");
}

TEST_CASE("a worker whose name a newer process has taken joins nothing, and its calls end") {
  EmbeddedGroup fleet(2);
  auto group = fleet.join(0);
  auto const waiting = std::vector<float>(10, 1);
  std::vector<float> result(10);
  auto const call = group.all_reduce_async(waiting, result);
  fleet.coordinator.fence_all();
  auto const ended = call.wait();
  REQUIRE(ended.has_error());
  CHECK(mentions(ended.error().detail, "newer process"));
  check_error(fleet.workers[0].join("g", soon()), WorkerErrc::fenced, "newer process");
}

TEST_CASE("the same epoch joined again is the same member, in the same order of calls") {
  EmbeddedGroup fleet(2);
  for (int time = 0; time < 3; ++time)
    fleet.everywhere([](JoinedGroup& group, std::size_t) {
      std::vector<float> x(100, 1);
      if (auto const status = group.all_reduce(x); status.has_error()) throw UnexpectedError(status.error());
      if (x != std::vector<float>(100, 2)) throw std::runtime_error("a wrong sum");
    });
}

TEST_CASE("a new epoch ends the calls of the old one, and joining gives the new one") {
  for (auto const memory : {Memory::shared, Memory::own}) {
    EmbeddedGroup fleet(2, memory);
    fleet.everywhere([](JoinedGroup& group, std::size_t) {
      if (group.barrier().has_error()) throw std::runtime_error("no barrier");
    });
    auto old = fleet.join(0);
    std::vector<float> x(10, 1);
    auto const waiting = old.all_reduce_async(x);
    auto const queued = old.barrier_async();
    fleet.coordinator.assign("g", 2, fleet.ids());
    for (auto const* call : {&waiting, &queued}) {
      auto const status = call->wait();
      REQUIRE(status.has_error());
      CHECK(status.error().code == EngineErrc::epoch_fenced);
      CHECK(mentions(status.error().detail, "epoch 2"));
    }
    CHECK(old.barrier().error().code == EngineErrc::epoch_fenced);
    CHECK(old.epoch() == 1);
    fleet.everywhere([](JoinedGroup& group, std::size_t) {
      if (group.epoch() != 2) throw std::runtime_error("an old epoch");
      if (auto const status = group.barrier(); status.has_error()) throw UnexpectedError(status.error());
    });
  }
}

TEST_CASE("a member that is lost is named by calls, and by joins until there is an epoch without it") {
  EmbeddedGroup fleet(3);
  auto group = fleet.join(0);
  auto const waiting = group.barrier_async();
  fleet.coordinator.assign("g", 1, fleet.ids(), [](auto& g) {
    g.state = "degraded";
    g.lost = {"w2"};
  });
  auto const status = waiting.wait();
  REQUIRE(status.has_error());
  CHECK(status.error().code == EngineErrc::peer_lost);
  CHECK(mentions(status.error().detail, "w2"));
  CHECK(group.culprits() == std::vector<std::uint32_t>{2});
  check_error(fleet.workers[0].join("g", in(milliseconds(20))), WorkerErrc::no_new_epoch, "w2");
  check_error(fleet.workers[1].join("g", in(milliseconds(20))), WorkerErrc::no_new_epoch, "lost");
  fleet.coordinator.assign("g", 2, {"w0", "w1"});
  CHECK(fleet.join(0).size() == 2);
}

TEST_CASE("a member that never calls is named at the deadline, and the epoch is over") {
  for (auto const memory : {Memory::shared, Memory::own}) {
    EmbeddedGroup fleet(2, memory);
    auto group = fleet.join(0);
    std::vector<float> x(10, 1);
    CHECK(group.culprits().empty());
    auto const late = group.all_reduce(x, {.timeout = milliseconds(100)});
    REQUIRE(late.has_error());
    CHECK(late.error().code == EngineErrc::deadline_exceeded);
    CHECK(mentions(late.error().detail, "w1"));
    CHECK(group.culprits() == std::vector<std::uint32_t>{1});
    CHECK(group.all_reduce(x).has_error());
    check_error(fleet.workers[0].join("g", in(milliseconds(20))), WorkerErrc::no_new_epoch, "w1");
  }
}

TEST_CASE("groups, handles and tensors outlive their worker, and calls say that it has stopped") {
  std::optional<JoinedGroup> group;
  std::optional<Handle> handle;
  std::optional<Tensor<float>> tensor;
  {
    EmbeddedGroup fleet(2);
    group = fleet.join(0);
    tensor = fleet.workers[0].allocate<float>(100).value();
    std::fill(tensor->begin(), tensor->end(), 1.0F);
    handle.emplace(group->all_reduce_async(*tensor));
  }
  auto const ended = handle->wait();
  REQUIRE(ended.has_error());
  CHECK(ended.error().code == EngineErrc::aborted);
  CHECK(mentions(group->barrier().error().detail, "stopped"));
  CHECK(group->culprits().empty());
  CHECK((*tensor)[99] == 1.0F);
}

TEST_CASE("a member whose part of a failed call ended well hears of the failure at its next call") {
  EmbeddedGroup fleet(3, Memory::own);
  std::vector<Status> ended(3, ok());
  fleet.everywhere([&](JoinedGroup& group, std::size_t rank) {
    std::vector<double> x(rank == 2 ? 7 : 6, 1);
    static_cast<void>(group.reduce(x));  // of rank 1, which only sends, it may succeed
    CollectiveOptions patient;
    patient.timeout = milliseconds(10000);
    ended[rank] = group.barrier(patient);
  });
  check_disagreement(ended);
}

TEST_CASE("a member whose message was refused after it was sent hears of that at its next collective call") {
  for (auto const memory : {Memory::shared, Memory::own}) {
    EmbeddedGroup fleet(2, memory);
    std::vector<Status> ended(2, ok());
    fleet.everywhere([&](JoinedGroup& group, std::size_t rank) {
      std::vector<double> x(rank == 0 ? 3 : 9, 1);
      if (rank == 0)
        static_cast<void>(group.recv(x, 1));
      else
        static_cast<void>(group.send(x, 0));
      CollectiveOptions patient;
      patient.timeout = milliseconds(10000);
      ended[rank] = group.barrier(patient);
    });
    check_disagreement(ended);
  }
}

TEST_CASE("a member that has no memory for its part of a call ends the call of the other one, and says why") {
  FakeCoordinator coordinator;
  auto small = test_options("w0", coordinator.url());
  small.memory_limit_bytes = 8 << 20;
  std::vector<Worker> workers;
  workers.push_back(Worker::start(small).value());
  workers.push_back(Worker::start(test_options("w1", coordinator.url())).value());
  coordinator.assign("g", 1, {"w0", "w1"});
  std::vector<Status> ended(2, ok());
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < 2; ++rank)
    threads.emplace_back([&, rank] {
      auto group = workers[rank].join("g", soon()).value();
      std::vector<float> x(4 << 20, 1);
      CollectiveOptions patient;
      patient.algorithm = "centralized";
      patient.timeout = milliseconds(20000);
      ended[rank] = group.all_reduce(x, patient);
    });
  for (auto& thread : threads) thread.join();
  for (auto const& status : ended) {
    REQUIRE(status.has_error());
    INFO(status.error().detail);
    CHECK(mentions(status.error().detail, "bytes to be given memory"));
  }
  CHECK(mentions(ended[1].error().detail, "rank 0 (w0) reports: "));
}
