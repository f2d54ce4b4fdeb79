// Messages between single members of a joined group, over shared memory and over connections.
#include <doctest/doctest.h>

#include <atomic>
#include <thread>

#include "tests/support/mentions.hpp"
#include "worker/api/testing/embedded_group.hpp"
#include "worker/api/testing/must.hpp"
#include "worker/engine/failure/errc.hpp"

using namespace chorus;
using namespace chorus::embedded::testing;
using chorus::testing::mentions;
using engine::EngineErrc;

namespace {

using Numbers = std::vector<std::int32_t>;

}  // namespace

TEST_CASE("members pass messages of any size around a ring, blocking and not") {
  for (auto const memory : {Memory::shared, Memory::own}) {
    EmbeddedGroup embedded(3, memory);
    embedded.everywhere([](JoinedGroup& group, std::size_t r) {
      auto const rank = static_cast<std::uint32_t>(r);
      auto const next = (rank + 1) % 3, before = (rank + 2) % 3;
      for (std::size_t const elements : {0, 1, 1000, 100000, 1000000}) {
        auto const own = counting(static_cast<std::int32_t>(1000 * rank), elements);
        auto const expected = counting(static_cast<std::int32_t>(1000 * before), elements);
        Numbers got(elements + 1, -1);
        auto const received = group.sendrecv(own, next, got, before, {.tag = 3});
        if (received.has_error()) throw UnexpectedError(received.error());
        MUST(received->source == before);
        MUST(received->bytes == elements * sizeof(std::int32_t));
        MUST(std::equal(expected.begin(), expected.end(), got.begin()));
        MUST(got.back() == -1);

        Numbers again(elements);
        Received info;
        auto const receive = group.recv_async(again, any_source, {.tag = 4}, &info);
        auto const send = group.send_async(own, next, {.tag = 4});
        must(send.wait());
        must(receive.wait());
        MUST(again == expected);
        MUST(info.source == before);
      }
      must(group.barrier());
    });
  }
}

TEST_CASE("a thousand small messages in both directions keep their order, and collectives go on between them") {
  for (auto const memory : {Memory::shared, Memory::own}) {
    EmbeddedGroup embedded(2, memory);
    embedded.everywhere([](JoinedGroup& group, std::size_t rank) {
      auto const other = static_cast<std::uint32_t>(1 - rank);
      Numbers number(1);
      for (std::int32_t i = 0; i < 1000; ++i) {
        if (rank == 0) must(group.send(Numbers{i}, other));
        auto const received = group.recv(number, other);
        if (received.has_error()) throw UnexpectedError(received.error());
        MUST(number[0] == i);
        if (rank == 1) must(group.send(number, other));
        if (i % 100 != 0) continue;
        Numbers sum{1};
        must(group.all_reduce(sum));
        MUST(sum[0] == 2);
      }
    });
  }
}

TEST_CASE("receives that were begun get messages in the order in which they were begun, before one that blocks") {
  EmbeddedGroup embedded(2);
  embedded.everywhere([](JoinedGroup& group, std::size_t rank) {
    constexpr std::size_t count = 50;
    if (rank == 0) {
      for (std::int32_t i = 0; i <= static_cast<std::int32_t>(count); ++i) must(group.send(Numbers{i}, 1));
      return;
    }
    std::vector<Numbers> got(count, Numbers(1));
    std::vector<Handle> handles;
    for (auto& each : got) handles.push_back(group.recv_async(each, 0));
    Numbers last(1);
    MUST(group.recv(last, 0).has_value());
    for (std::size_t i = 0; i < count; ++i) {
      must(handles[i].wait());
      MUST(got[i] == Numbers{static_cast<std::int32_t>(i)});
    }
    MUST(last == Numbers{static_cast<std::int32_t>(count)});
  });
}

TEST_CASE("several threads of a member send and receive at the same time, by tags") {
  EmbeddedGroup embedded(2);
  embedded.everywhere([](JoinedGroup& group, std::size_t rank) {
    auto const other = static_cast<std::uint32_t>(1 - rank);
    std::atomic<int> right{0};
    std::vector<std::thread> threads;
    for (std::uint32_t tag = 0; tag < 4; ++tag)
      threads.emplace_back([&, tag] {
        for (std::int32_t i = 0; i < 100; ++i) {
          Numbers got(1);
          auto const received =
              group.sendrecv(Numbers{static_cast<std::int32_t>(1000 * tag) + i}, other, got, other, {.tag = tag});
          if (received.has_value() && got[0] == static_cast<std::int32_t>(1000 * tag) + i) ++right;
        }
      });
    for (auto& thread : threads) thread.join();
    MUST(right == 400);
  });
}

TEST_CASE("two threads of each member send small and large messages, and each thread's receives get them in order") {
  for (auto const memory : {Memory::shared, Memory::own}) {
    EmbeddedGroup embedded(2, memory);
    embedded.everywhere([](JoinedGroup& group, std::size_t rank) {
      constexpr std::int32_t count = 300;
      auto const other = static_cast<std::uint32_t>(1 - rank);
      std::atomic<int> right{0};
      auto const size = [](std::int32_t i) {
        return i % 10 == 0 ? std::size_t{100000} : 1 + static_cast<std::size_t>(i);
      };
      std::vector<std::thread> threads;
      for (std::uint32_t tag = 0; tag < 2; ++tag) {
        threads.emplace_back([&, tag] {
          for (std::int32_t i = 0; i < count; ++i)
            if (group.send(counting(i, size(i)), other, {.tag = tag}).has_error()) return;
        });
        threads.emplace_back([&, tag] {
          Numbers got(100000);
          for (std::int32_t i = 0; i < count; ++i) {
            auto const received = group.recv(got, i % 2 == 0 ? other : any_source, {.tag = tag});
            bool const is_right = received.has_value() && received->source == other &&
                                  received->bytes == size(i) * sizeof(std::int32_t) &&
                                  std::equal(got.begin(), got.begin() + static_cast<std::ptrdiff_t>(size(i)),
                                             counting(i, size(i)).begin());
            right += is_right ? 1 : 0;
          }
        });
      }
      for (auto& thread : threads) thread.join();
      MUST(right == 2 * count);
    });
  }
}

TEST_CASE("what cannot be is refused, and nothing else is disturbed") {
  EmbeddedGroup embedded(2);
  auto group = embedded.join(0);
  Numbers number(1);
  auto const refused = [](Status const& status, std::string const& why) {
    REQUIRE(status.has_error());
    CHECK(status.error().code == WorkerErrc::bad_argument);
    CHECK(mentions(status.error().detail, why));
  };
  refused(group.send(number, 2), "a message to rank 2 in a group of 2");
  refused(group.send(number, 1, {.tag = 0x80000000}), "tag 2147483648; expected at most 2147483647");
  refused(group.send(number, 1, {.timeout = std::chrono::milliseconds(0)}), "a timeout of 0 ms");
  refused(group.send(number, any_source), "a message to rank 4294967295");
  refused(group.recv_async(number, 7).wait(), "a message from rank 7 in a group of 2");
  CHECK(group.culprits().empty());
  embedded.everywhere([](JoinedGroup& group, std::size_t) { must(group.barrier()); });
}

TEST_CASE("a member passes messages to itself in threads of its own, and blocks only for what is too large to wait") {
  for (std::size_t const ranks : {std::size_t{1}, std::size_t{2}}) {
    EmbeddedGroup embedded(ranks);
    embedded.everywhere([](JoinedGroup& group, std::size_t r) {
      auto const rank = static_cast<std::uint32_t>(r);
      std::thread sender([&group, rank] {
        for (std::int32_t i = 0; i < 100; ++i)
          if (group.send(counting(i, i % 10 == 0 ? 100000 : 5), rank, {.tag = 1}).has_error()) return;
      });
      Numbers got(100000);
      bool in_order = true;
      for (std::int32_t i = 0; i < 100; ++i) {
        auto const received = group.recv(got, i % 2 == 0 ? rank : any_source, {.tag = 1});
        in_order = in_order && received.has_value() && received->source == rank && got[0] == i;
      }
      sender.join();
      MUST(in_order);
    });
  }
}

TEST_CASE("either a message or a cancel wins a receive, and what was not received is there for the next one") {
  for (auto const memory : {Memory::shared, Memory::own}) {
    EmbeddedGroup embedded(2, memory);
    embedded.everywhere([](JoinedGroup& group, std::size_t rank) {
      constexpr std::int32_t count = 300;
      if (rank == 0) {
        for (std::int32_t i = 0; i < count; ++i) {
          must(group.barrier());
          must(group.send(Numbers{i}, 1));
        }
        return;
      }
      for (std::int32_t i = 0; i < count; ++i) {
        Numbers first{-1}, second{-1};
        auto const receive = group.recv_async(first, 0);
        must(group.barrier());
        auto const cancel = receive.cancel();
        auto const ended = receive.wait();
        MUST(cancel.has_value() == ended.has_error());
        if (ended.has_value()) {
          MUST(cancel.error().code == WorkerErrc::not_cancellable);
          MUST(first[0] == i);
          continue;
        }
        MUST(ended.error().code == WorkerErrc::cancelled);
        must(group.recv(second, 0).has_value(), "the message is there for the next receive");
        MUST(second[0] == i && first[0] == -1);
      }
    });
  }
}

TEST_CASE("a thread that waits for a receive is woken by another one that cancels it, or by both that do") {
  EmbeddedGroup embedded(2);
  auto group = embedded.join(1);
  for (int time = 0; time < 50; ++time) {
    Numbers number(1);
    auto const receive = group.recv_async(number, 0);
    std::atomic<int> cancelled{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 2; ++t) threads.emplace_back([&] { cancelled += receive.cancel().has_value() ? 1 : 0; });
    CHECK(receive.wait().error().code == WorkerErrc::cancelled);
    for (auto& thread : threads) thread.join();
    CHECK(cancelled == 2);
  }
  CHECK(group.culprits().empty());
}

TEST_CASE("a cancel after the worker has stopped, or after the group is gone, says that the call has ended") {
  EmbeddedGroup embedded(2);
  Numbers number(1);
  std::optional<JoinedGroup> group = embedded.join(1);
  auto const receive = group->recv_async(number, 0);
  embedded.workers.pop_back();
  group.reset();
  CHECK(receive.cancel().error().code == WorkerErrc::not_cancellable);
  CHECK(receive.wait().error().code == EngineErrc::aborted);
}

TEST_CASE("a receive that is too small tells both members, and ends the epoch") {
  for (auto const memory : {Memory::shared, Memory::own}) {
    EmbeddedGroup embedded(2, memory);
    embedded.everywhere([](JoinedGroup& group, std::size_t rank) {
      Numbers numbers(100000, 1);
      auto const told = [](Status const& status) {
        MUST(status.has_error());
        MUST(status.error().code == EngineErrc::plan_mismatch);
        MUST(mentions(status.error().detail, "receives at most 8"));
      };
      if (rank == 0) {
        told(group.send(numbers, 1));
      } else {
        Numbers few{7, 7, 7};
        auto const received = group.recv(std::span(few).first(2), 0);
        MUST(received.has_error());
        told(received.error());
        MUST(few == Numbers(3, 7));
      }
      MUST((group.culprits() == std::vector<std::uint32_t>{0, 1}));
      MUST(group.barrier().has_error());
    });
  }
}

TEST_CASE("a receive that no message meets ends at its deadline, and the group goes on") {
  EmbeddedGroup embedded(2);
  embedded.everywhere([](JoinedGroup& group, std::size_t rank) {
    Numbers number(1);
    if (rank == 1) {
      auto const received = group.recv(number, 0, {.tag = 9, .timeout = std::chrono::milliseconds(30)});
      MUST(received.has_error());
      MUST(received.error().code == EngineErrc::deadline_exceeded);
      MUST(mentions(received.error().detail, "no message with tag 9 from rank 0 (w0)"));
    }
    must(group.barrier());
  });
}

TEST_CASE("messages end with the epoch and with the worker") {
  EmbeddedGroup embedded(2);
  auto group = embedded.join(1);
  Numbers number(1);
  auto const waiting = group.recv_async(number, 0);
  embedded.coordinator.assign("g", 2, embedded.ids());
  auto const ended = waiting.wait();
  REQUIRE(ended.has_error());
  CHECK(ended.error().code == EngineErrc::epoch_fenced);
  CHECK(group.send(number, 0).error().code == EngineErrc::epoch_fenced);

  auto next = embedded.join(1);
  auto const again = next.recv_async(number, 0);
  embedded.workers.pop_back();
  REQUIRE(again.wait().has_error());
  CHECK(again.wait().error().code == EngineErrc::aborted);
  CHECK(next.send(number, 0).has_error());
}
