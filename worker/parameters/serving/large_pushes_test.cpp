// Checks of a large push do not block the control thread.
#include <doctest/doctest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cstring>
#include <latch>
#include <limits>
#include <memory>
#include <numeric>
#include <string>

#include "http/client/client.hpp"
#include "worker/parameters/serving/access/access.hpp"
#include "worker/parameters/serving/shard_host.hpp"
#include "worker/parameters/shard/testing/assignment.hpp"

namespace chorus::parameters {
namespace {

namespace asio = boost::asio;

http::TimePoint in_a_minute() { return std::chrono::steady_clock::now() + std::chrono::minutes(1); }

class ControlThread {
 public:
  asio::io_context io;
  asio::thread_pool threads{1};
  tensors::Pool pool{64 << 20, 256 << 20};
  http::Client client{io.get_executor()};

  // Returns the number of turns that other work gets during the story. Other threads start after `turns_alone` turns.
  static constexpr std::size_t turns_alone = 100;
  std::size_t turns_during(asio::awaitable<void> story) {
    bool is_over = false;
    std::size_t turns = 0;
    auto const begins = std::make_shared<std::latch>(1);
    asio::post(threads, [begins] { begins->wait(); });
    io.restart();
    asio::co_spawn(io, std::move(story), [&](std::exception_ptr failed) {
      CHECK(failed == nullptr);
      is_over = true;
    });
    asio::co_spawn(io, count_turns(&turns, &is_over, begins), [](std::exception_ptr) {});
    while (!is_over) io.run_one();
    io.poll();
    if (turns < turns_alone) begins->count_down();
    return turns;
  }

 private:
  asio::awaitable<void> count_turns(std::size_t* turns, bool const* is_over, std::shared_ptr<std::latch> begins) {
    while (!*is_over) {
      if (++*turns == turns_alone) begins->count_down();
      co_await asio::post(io, asio::use_awaitable);
    }
  }
};

asio::awaitable<void> push_nan(ControlThread* control, std::uint64_t elements, http::ProblemCode* refused) {
  api::Parameter parameter;
  parameter.name = "w";
  parameter.dtype = "f32";
  parameter.shape = {elements};
  parameter.nonfinite = "reject";
  for (std::uint32_t shard = 0; shard < 2; ++shard) {
    api::ParameterEndpoint owner;
    owner.shard = shard;
    owner.role = "owner";
    owner.elements = {shard * elements / 2, (shard + 1) * elements / 2};
    parameter.endpoints.push_back(std::move(owner));
  }
  auto placement = Placement::from(std::move(parameter));
  REQUIRE(placement.has_value());
  Access access(control->io.get_executor(), control->client, http::MessageChecksums::off, "");
  Push push;
  push.client = {"c", 0};
  auto const block = control->pool.acquire(elements * sizeof(float)).value();
  std::memset(block->data(), 0, block->size_bytes());
  auto const nan = std::numeric_limits<float>::quiet_NaN();
  std::memcpy(block->data() + block->size_bytes() - sizeof nan, &nan, sizeof nan);
  push.data = block;
  auto const answer = co_await access.push(*placement, std::move(push), {}, in_a_minute());
  if (!answer) *refused = answer.error().code;
  co_await access.stop();
}

using Answer = http::Checked<api::PushAnswer>;

// Pushes rows with ones to a new shard, at its owner.
asio::awaitable<void> push_rows(ControlThread* control, api::ShardAssignment assignment,
                                std::vector<std::uint64_t> rows, Answer* said) {
  ShardTools const tools{control->io.get_executor(),
                         control->threads.get_executor(),
                         {control->client, http::MessageChecksums::off},
                         control->pool,
                         {},
                         1 << 20,
                         {},
                         nullptr,
                         nullptr};
  assignment.role = "owner";
  assignment.epoch = 1;
  assignment.fresh = true;
  auto spec = ShardSpec::from(assignment);
  REQUIRE(spec.has_value());
  auto shard = Shard::make(std::move(*spec), control->pool);
  REQUIRE(shard.has_value());
  auto const owner = std::make_shared<ShardHost>(tools, std::move(*shard), assignment);
  Push push;
  push.kind = PushKind::rows;
  push.client = {"c", 0};
  push.rows = rows.size();
  auto const block = control->pool.acquire(rows.size() * (sizeof(std::uint64_t) + sizeof(float))).value();
  std::memset(block->data(), 0, block->size_bytes());
  std::memcpy(block->data(), rows.data(), rows.size() * sizeof(std::uint64_t));
  push.data = block;
  // From here on the coroutine only waits for the answer.
  co_await asio::post(control->io, asio::use_awaitable);
  *said = co_await owner->push(std::move(push), in_a_minute());
  co_await owner->stop();
}

std::vector<std::uint64_t> ascending(std::uint64_t count) {
  std::vector<std::uint64_t> rows(count);
  std::iota(rows.begin(), rows.end(), std::uint64_t{0});
  return rows;
}

// The answer to a push, and the number of turns that other work got meanwhile.
struct Pushed {
  std::size_t turns = 0;
  Answer answer = http::Problem(http::ProblemCode::internal, "no answer");
};
Pushed pushed(api::ShardAssignment const& assignment, std::vector<std::uint64_t> rows) {
  ControlThread control;
  Pushed pushed;
  pushed.turns = control.turns_during(push_rows(&control, assignment, std::move(rows), &pushed.answer));
  return pushed;
}

constexpr std::uint64_t few = 1000, many = 1 << 20;

api::ShardAssignment lazy(std::uint64_t lazy_rows) {
  auto assignment = testing::plain({many, 1});
  assignment.parameter.lazy_rows = lazy_rows;
  return assignment;
}

}  // namespace

TEST_CASE("a gradient for several shards is searched for NaN in portions, with turns for other work in between") {
  ControlThread control;
  auto refused = http::ProblemCode::internal;
  auto const turns = control.turns_during(push_nan(&control, 16 << 20, &refused));
  CHECK(refused == http::ProblemCode::non_finite);
  CHECK(turns >= 8);  // 64 MiB are many portions
}

TEST_CASE("the row numbers of a large push are checked on another thread, with turns for other work meanwhile") {
  auto const descending = [](std::uint64_t count) {
    auto rows = ascending(count);
    std::swap(rows[count - 1], rows[count - 2]);
    return pushed(testing::plain({count, 1}), rows);
  };
  auto const small = descending(few), large = descending(many);
  for (auto const* one : {&small, &large}) CHECK(one->answer.error().code == http::ProblemCode::invalid_field);
  CHECK(small.turns < ControlThread::turns_alone);
  CHECK(large.turns >= ControlThread::turns_alone);
}

TEST_CASE("rows that a large push creates, or for which there is no room, are counted on another thread") {
  auto const created = pushed(lazy(many), ascending(many));
  CHECK(created.answer.has_value());
  CHECK(created.turns >= ControlThread::turns_alone);
  auto const small = pushed(lazy(few - 1), ascending(few)), large = pushed(lazy(many - 1), ascending(many));
  for (auto const* one : {&small, &large}) CHECK(one->answer.error().code == http::ProblemCode::rows_exhausted);
  CHECK(small.turns < ControlThread::turns_alone);
  CHECK(large.turns >= ControlThread::turns_alone);
}

}  // namespace chorus::parameters
