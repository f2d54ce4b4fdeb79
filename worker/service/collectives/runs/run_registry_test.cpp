// The run registry alone: what it remembers and for how long. Groups of one member need no peers.
#include <doctest/doctest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include "worker/service/collectives/runs/run_registry.hpp"

using namespace chorus;
using namespace chorus::service;

namespace {

class Book {
 public:
  explicit Book(RunRegistry::Limits limits) : book(control.get_executor(), runner, limits) {
    auto block = pool.acquire(4).value();
    std::fill_n(block->data(), 4, std::byte{1});
    CHECK(store.put("x", Dtype::i32, {1}, std::move(block), {}).value() == 1);
  }
  ~Book() {
    boost::asio::co_spawn(control, book.stop(), [](std::exception_ptr) {});
    finish();
  }

  // Runs until there is no run, and no result that waits for its commit.
  void finish() {
    control.restart();
    control.run();
  }

  // Steps until the run has ended on the data thread and its result is on the way to the registry.
  void step_to_the_result() {
    auto const before = pool.in_use_bytes();
    while (pool.in_use_bytes() == before) control.run_one();
    control.run_one();
  }

  http::Checked<std::uint64_t> commit(std::uint64_t run) {
    std::optional<http::Checked<std::uint64_t>> answer;
    boost::asio::co_spawn(control, book.commit(run),
                          [&](std::exception_ptr, http::Checked<std::uint64_t> given) { answer = std::move(given); });
    control.restart();
    while (!answer) control.run_one();
    return *answer;
  }

  [[nodiscard]] RunOrder order_of(std::uint64_t run, std::chrono::milliseconds timeout) const {
    RunOrder order;
    order.run = run;
    order.group = "g";
    order.epoch = 1;
    order.spec = {Op::all_reduce, "ring", 1, 0, 2, false, {}};
    order.sizes.elements = store.get("x")->elements();
    order.members = {{0, "w0", 1, "http://127.0.0.1:1"}};
    order.tensor = "x";
    order.deadline = std::chrono::steady_clock::now() + timeout;
    return order;
  }

  void launch(std::uint64_t run, std::chrono::milliseconds timeout) {
    boost::asio::co_spawn(
        control, book.put(order_of(run, timeout), "w0", "request"),
        [this](std::exception_ptr, http::Checked<api::RunReport> answer) { report = std::move(answer); });
  }

  boost::asio::io_context control{1};
  tensors::Pool pool{1 << 20, 1 << 20};
  tensors::Store store;
  engine::PlanCache plans{1 << 20};
  Helper helper{control.get_executor()};
  metrics::WorkerMetrics metrics{metrics::this_build(), 0};
  engine::FlightRecorder flights;
  spdlog::logger log{"worker"};
  engine::DataPlane plane{{.worker = "w0", .incarnation = 1}};
  Runner runner{{control.get_executor(), plane, plans, store, pool, helper, metrics, flights, log}};
  RunRegistry book;
  std::optional<http::Checked<api::RunReport>> report;
};

}  // namespace

TEST_CASE("a result that is never committed is dropped when its time is over") {
  Book b({.hold = std::chrono::milliseconds(1), .remembered = 8});
  b.launch(7, std::chrono::milliseconds(300));
  b.finish();
  REQUIRE(b.report.has_value());
  CHECK(b.report->value().state == "succeeded");
  CHECK(b.commit(7).error().code == http::ProblemCode::cancelled);
  CHECK(b.store.get("x").value().version == 1);
  CHECK(b.pool.in_use_bytes() == 64);
}

TEST_CASE("an abort that comes while the result is on its way drops it") {
  Book b({.hold = std::chrono::milliseconds(1), .remembered = 8});
  b.launch(7, std::chrono::seconds(20));
  b.step_to_the_result();
  CHECK_FALSE(b.book.drop(7).has_value());
  b.control.poll();
  CHECK(b.commit(7).error().code == http::ProblemCode::cancelled);
  CHECK(b.store.get("x").value().version == 1);
}

TEST_CASE("a commit that was refused is refused again with the same reason") {
  Book b({.hold = std::chrono::seconds(20), .remembered = 8});
  b.launch(7, std::chrono::seconds(20));
  b.step_to_the_result();
  b.control.poll();
  REQUIRE(b.store.erase("x", {}).has_value());
  auto const first = b.commit(7).error();
  CHECK(first.code == http::ProblemCode::mismatch);
  auto const second = b.commit(7).error();
  CHECK(second.code == http::ProblemCode::mismatch);
  CHECK(second.detail == first.detail);
}

TEST_CASE("a tensor that was scaled in place for a run that is aborted before it begins is another version") {
  Book b({.hold = std::chrono::milliseconds(1), .remembered = 8});
  constexpr std::size_t elements = 200'000;
  auto block = b.pool.acquire(elements * sizeof(float)).value();
  std::fill_n(reinterpret_cast<float*>(block->data()), elements, 1.0F);
  CHECK(b.store.put("y", Dtype::f32, {elements}, std::move(block), {}).value() == 1);
  auto order = b.order_of(7, std::chrono::seconds(20));
  order.tensor = "y";
  order.spec.in_place = true;
  order.sizes.elements = elements;
  order.reduce = ReduceOp::avg;
  order.contributions = 2;
  std::optional<http::Checked<RunEnd>> ended;
  boost::asio::co_spawn(b.control, b.runner.run(std::move(order)),
                        [&](std::exception_ptr, http::Checked<RunEnd> end) { ended = std::move(end); });
  while (b.store.get("y")) b.control.run_one();
  b.runner.abort(7, Error(engine::EngineErrc::aborted, "told to end"));
  while (!ended) b.control.run_one();
  CHECK(ended->error().detail == "told to end");
  CHECK(b.store.get("y").value().version == 2);
}

TEST_CASE("a restarted coordinator is told the state of a run") {
  Book b({.hold = std::chrono::milliseconds(100), .remembered = 8});
  CHECK_FALSE(b.book.status(7).has_value());
  b.launch(7, std::chrono::seconds(20));
  b.step_to_the_result();
  b.control.poll();
  CHECK(b.book.status(7)->state == "held");
  CHECK(b.book.status(7)->report->state == "succeeded");
  CHECK(b.commit(7).value() == 2);
  CHECK(b.book.status(7)->state == "committed");
  CHECK(b.book.status(7)->report->version == 2);
  CHECK_FALSE(b.book.drop(8).has_value());
  CHECK(b.book.status(8)->state == "dropped");
  CHECK_FALSE(b.book.status(8)->report.has_value());
}

TEST_CASE("only the latest ended runs are remembered") {
  Book b({.hold = std::chrono::milliseconds(1), .remembered = 2});
  for (std::uint64_t run : {1, 2, 3}) CHECK_FALSE(b.book.drop(run).has_value());
  CHECK(b.commit(1).error().code == http::ProblemCode::unknown_run);
  CHECK(b.commit(2).error().code == http::ProblemCode::cancelled);
  CHECK(b.commit(3).error().code == http::ProblemCode::cancelled);
}

TEST_CASE("no run begins after drain()") {
  Book b({.hold = std::chrono::milliseconds(1), .remembered = 2});
  b.book.drain();
  b.launch(7, std::chrono::milliseconds(300));
  b.finish();
  CHECK(b.report->error().code == http::ProblemCode::unavailable);
}

TEST_CASE("a run that ends takes nothing from the next one of its number, which is waiting for a reader") {
  Book b({.hold = std::chrono::milliseconds(1), .remembered = 8});
  auto reader = b.store.get("x");
  auto in_place = b.order_of(7, std::chrono::seconds(20));
  in_place.spec.in_place = true;
  std::size_t ended = 0;
  auto const end = [&](std::exception_ptr failure, http::Checked<RunEnd> const&) {
    CHECK(failure == nullptr);
    ++ended;
  };
  boost::asio::co_spawn(b.control, b.runner.run(b.order_of(7, std::chrono::seconds(20))), end);
  boost::asio::co_spawn(b.control, b.runner.run(std::move(in_place)), end);
  while (ended == 0) b.control.run_one();
  reader = b.store.get("no reader");
  while (ended < 2) b.control.run_one();
}
