// Messages of data planes that share memory, from several threads of each member: run under ThreadSanitizer too.
#include <doctest/doctest.h>

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "worker/engine/messages/message_group.hpp"
#include "worker/engine/testing/tcp_fleet.hpp"

using namespace chorus;
using namespace chorus::engine;
using namespace chorus::engine::testing;
using namespace std::chrono_literals;

namespace {

class Members {
 public:
  Members() : fleet_(2, {}, make_arenas(2)) {
    for (plan::Rank rank = 0; rank < 2; ++rank)
      groups_.push_back(std::make_shared<MessageGroup>(fleet_.membership("g", rank)));
  }

  bool send(plan::Rank rank, std::uint32_t tag, std::span<std::byte const> content) {
    return run(rank, {MessageWay::send, 1 - rank, tag, content, {}, {}, 0});
  }
  bool receive(plan::Rank rank, plan::Rank source, std::uint32_t tag, std::span<std::byte> to) {
    return run(rank, {MessageWay::receive, source, tag, {}, to, {}, groups_[rank]->draw_receive()});
  }

 private:
  bool run(plan::Rank rank, MessageRequest request) {
    if (fleet_.plane(rank).run_at_once(*groups_[rank], request)) return true;
    MessageResult result;
    fleet_.plane(rank).run_messages(groups_[rank], std::span(&request, 1), 60s, std::span(&result, 1));
    return result.status.has_value();
  }

  TcpFleet fleet_;
  std::vector<std::shared_ptr<MessageGroup>> groups_;
};

}  // namespace

TEST_CASE("pairs of threads pass messages to and fro, one pair or several beside each other, and each gets its own") {
  for (unsigned const pairs : {1, 3}) {
    CAPTURE(pairs);
    Members members;
    std::atomic<unsigned> wrong = 0;
    auto const pass = [&](plan::Rank rank, unsigned pair) {
      for (unsigned trip = 0; trip < 500; ++trip) {
        std::size_t const bytes = pair == 2 && trip % 50 == 0 ? 100000 : sizeof(unsigned) + trip;
        auto const source = pair == 1 ? any_source : 1 - rank;
        std::vector<std::byte> sent(bytes, static_cast<std::byte>(pair)), got(bytes);
        std::memcpy(sent.data(), &trip, sizeof trip);
        bool const is_first = rank == 0;
        if (is_first && !members.send(rank, pair, sent)) ++wrong;
        if (!members.receive(rank, source, pair, got) || got != sent) ++wrong;
        if (!is_first && !members.send(rank, pair, got)) ++wrong;
      }
    };
    std::vector<std::thread> threads;
    for (unsigned pair = 0; pair < pairs; ++pair)
      for (plan::Rank rank = 0; rank < 2; ++rank) threads.emplace_back(pass, rank, pair);
    for (auto& thread : threads) thread.join();
    CHECK(wrong == 0);
  }
}
