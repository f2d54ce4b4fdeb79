// Allocation of memory while the control thread does other work.
#include "worker/service/memory/prepared_memory.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>
#include <future>

using namespace chorus;
using namespace chorus::service;
using boost::asio::awaitable;

namespace {

constexpr std::size_t MiB = 1 << 20;

// A body whose sender stops after `bytes` bytes.
class StoppingBody final : public http::Body {
 public:
  StoppingBody(boost::asio::any_io_executor executor, std::size_t bytes) : left_(bytes), never_(executor) {}
  [[nodiscard]] std::optional<std::uint64_t> length() const override { return std::nullopt; }
  awaitable<http::Checked<std::size_t>> read_exactly(std::span<std::byte> destination) override {
    auto const there = destination.first(std::min(left_, destination.size()));
    std::ranges::fill(there, std::byte{7});
    left_ -= there.size();
    if (there.size() < destination.size()) {
      has_stopped = true;
      co_await never_.wait_until(http::Condition::TimePoint::max());
    }
    co_return destination.size();
  }
  awaitable<http::Checked<std::string>> read_all(std::size_t) override { co_return std::string(); }
  awaitable<std::optional<http::Problem>> expect_end() override { co_return std::nullopt; }

  bool has_stopped = false;

 private:
  std::size_t left_;
  http::Condition never_;
};

struct World {
  template <class Work>
  auto run(awaitable<Work> work) {
    auto result = boost::asio::co_spawn(control, std::move(work), boost::asio::use_future);
    while (result.wait_for(std::chrono::seconds(0)) != std::future_status::ready) control.run_one();
    return result.get();
  }

  std::shared_ptr<memory::Arena> const arena =
      std::make_shared<memory::Arena>(memory::SharedRegion::create(memory::random_ticket(2048 * MiB)).value());
  boost::asio::io_context control{1};
  // Keeps run() waiting for other threads when nothing is ready.
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> waits{control.get_executor()};
  tensors::Pool pool{256 * MiB, 1024 * MiB, arena};
  Helper helper{control.get_executor()};
};

}  // namespace

TEST_CASE("slow work delays no other work") {
  World w;
  std::promise<int> said;
  auto heard = said.get_future();
  auto const slow = w.helper.start([&heard] { return heard.get(); });
  w.run(w.helper.compute([&said] {
    said.set_value(5);
    return true;
  }));
  CHECK(w.run(slow->take()) == 5);
}

TEST_CASE("everything that work holds is destroyed when its caller resumes") {
  World w;
  auto held = std::make_shared<int>(1);
  std::weak_ptr<int> const seen = held;
  CHECK(w.run(w.helper.compute([held = std::move(held)] { return *held; })) == 1);
  CHECK(seen.expired());
}

TEST_CASE("a block that is not kept is acquired on another thread, and a kept one at once") {
  World w;
  auto block = w.run(acquire_prepared(w.pool, w.helper, 64 * MiB)).value();
  CHECK(w.pool.in_use_bytes() == 64 * MiB);
  auto* const place = block->data();
  block.reset();
  std::optional<std::byte*> found;
  boost::asio::co_spawn(
      w.control, acquire_prepared(w.pool, w.helper, 64 * MiB),
      [&](std::exception_ptr, Result<std::shared_ptr<tensors::Block>> again) { found = again.value()->data(); });
  w.control.poll();
  CHECK(found == place);
  CHECK(w.run(acquire_prepared(w.pool, w.helper, 2048 * MiB)).has_error());
}

TEST_CASE("an announced body that never comes takes little memory") {
  World w;
  for (std::size_t const comes : {std::size_t{1}, 10 * MiB, 300 * MiB}) {
    StoppingBody body(w.control.get_executor(), comes);
    boost::asio::cancellation_signal stop;
    bool is_over = false;
    boost::asio::co_spawn(w.control, receive_prepared(body, 1000 * MiB, w.pool, w.helper),
                          boost::asio::bind_cancellation_slot(stop.slot(), [&](auto&&...) { is_over = true; }));
    while (!body.has_stopped) w.control.run_one();
    CHECK(w.pool.in_use_bytes() <= 2 * comes + 4 * MiB);
    CHECK(w.pool.in_use_bytes() <= comes + 160 * MiB);
    stop.emit(boost::asio::cancellation_type::terminal);
    while (!is_over) w.control.run_one();
  }
}

TEST_CASE("a body that comes fills its block, in pieces of any size") {
  World w;
  for (std::size_t const bytes : {std::size_t{0}, std::size_t{1}, 100 * MiB / 1000, 3 * MiB + 17, 300 * MiB + 1}) {
    StoppingBody body(w.control.get_executor(), bytes);
    auto const block = w.run(receive_prepared(body, bytes, w.pool, w.helper)).value();
    CHECK(block->size_bytes() == bytes);
    CHECK(std::ranges::all_of(block->bytes(), [](auto b) { return b == std::byte{7}; }));
  }
}

TEST_CASE("a block that arrives in several bodies goes on at its end, or before") {
  World w;
  StoppingBody body(w.control.get_executor(), 40 * MiB);
  auto const arriving = ArrivingBlock::announce(w.pool, w.helper, 20 * MiB).value();
  for (auto const& [offset, bytes] : std::vector<std::pair<std::size_t, std::size_t>>{
           {0, 5}, {5, 3 * MiB}, {MiB, 7 * MiB}, {8 * MiB, 0}, {8 * MiB, 12 * MiB}})
    CHECK(w.run(arriving->read(body, offset, bytes)).value() == bytes);
  CHECK(std::ranges::all_of(arriving->block()->bytes(), [](auto b) { return b == std::byte{7}; }));
}

TEST_CASE("a block begins with bytes that have come before, and goes on with a body") {
  World w;
  for (std::size_t const bytes : {std::size_t{0}, std::size_t{5}, 9 * MiB + 3}) {
    StoppingBody body(w.control.get_executor(), MiB);
    std::vector<std::byte> const before(bytes, std::byte{3});
    auto const arriving = ArrivingBlock::announce(w.pool, w.helper, bytes + MiB).value();
    CHECK_FALSE(w.run(arriving->copy(before, 0)));
    CHECK(w.run(arriving->read(body, bytes, MiB)).has_value());
    auto const whole = arriving->block()->bytes();
    CHECK(std::ranges::all_of(whole.first(bytes), [](auto b) { return b == std::byte{3}; }));
    CHECK(std::ranges::all_of(whole.subspan(bytes), [](auto b) { return b == std::byte{7}; }));
  }
}

TEST_CASE("a body for which there is no memory is refused, now and later") {
  World w;
  StoppingBody body(w.control.get_executor(), 2000 * MiB);
  auto const arriving = ArrivingBlock::announce(w.pool, w.helper, 1000 * MiB).value();
  auto const other = w.pool.acquire(900 * MiB).value();
  auto const refused = w.run(arriving->read(body, 0, 1000 * MiB));
  REQUIRE(refused.has_error());
  CHECK(w.run(arriving->read(body, 0, 1000 * MiB)).has_error());
}
