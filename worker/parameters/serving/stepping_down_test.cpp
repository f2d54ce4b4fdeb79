// A worker stops being the owner while a push is prepared or computed on another thread: it does not acknowledge the
// push, which its successor may not have.
#include <doctest/doctest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <cstring>
#include <optional>

#include "http/client/client.hpp"
#include "worker/parameters/serving/shard_host.hpp"
#include "worker/parameters/shard/testing/assignment.hpp"

namespace chorus::parameters {
namespace {

namespace asio = boost::asio;

constexpr std::uint64_t elements = 1 << 18;  // 1 MiB is prepared and computed on another thread

api::ShardAssignment placed(std::uint32_t epoch, std::string role) {
  auto assignment = testing::plain({elements});
  assignment.parameter.nonfinite = "zero";
  assignment.epoch = epoch;
  assignment.role = std::move(role);
  assignment.fresh = epoch == 1;
  return assignment;
}

// An owner without a backup. Its control thread and its other threads are this thread, which runs them step by step.
class Owner {
 public:
  Owner() {
    auto spec = ShardSpec::from(placed(1, "owner"));
    REQUIRE(spec.has_value());
    auto shard = Shard::make(std::move(*spec), pool_);
    REQUIRE(shard.has_value());
    host = std::make_shared<ShardHost>(tools_, std::move(*shard), placed(1, "owner"));
    run_control();
  }
  ~Owner() {
    auto is_over = false;
    asio::co_spawn(control_, host->stop(), [&](std::exception_ptr) { is_over = true; });
    while (!is_over) run_all();
    host.reset();
    run_all();  // which gives the shard's memory back
    client_.close();
    run_all();
  }
  Owner(Owner const&) = delete;
  Owner& operator=(Owner const&) = delete;

  void push() {
    Push push;
    push.client = {"c", 0};
    auto const block = pool_.acquire(elements * sizeof(float)).value();
    std::memset(block->data(), 0, block->size_bytes());
    push.data = block;
    auto const deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    asio::co_spawn(control_, keep(host->push(std::move(push), deadline)), [](std::exception_ptr) {});
    run_control();
  }
  // Runs one piece of the work on the other threads, and what follows on the control thread. False: there is none.
  bool step() {
    threads_.restart();
    auto const has_run = threads_.poll_one() > 0;
    run_control();
    return has_run;
  }
  void run_all() {
    while (step()) {}
  }

  std::shared_ptr<ShardHost> host;
  std::optional<http::Checked<api::PushAnswer>> answer;

 private:
  asio::awaitable<void> keep(asio::awaitable<http::Checked<api::PushAnswer>> asked) {
    answer = co_await std::move(asked);
  }
  void run_control() {
    control_.restart();
    while (control_.poll() > 0) control_.restart();
  }

  asio::io_context control_, threads_;
  tensors::Pool pool_{1 << 20, 64 << 20};
  http::Client client_{control_.get_executor()};
  ShardTools const tools_{control_.get_executor(),
                          threads_.get_executor(),
                          {client_, http::MessageChecksums::off},
                          pool_,
                          {},
                          1 << 20,
                          {},
                          nullptr,
                          nullptr};
};

// Returns the number of pieces of work that other threads do for one push.
int steps_of_a_push() {
  Owner owner;
  owner.push();
  auto steps = 0;
  while (!owner.answer && owner.step()) ++steps;
  REQUIRE(owner.answer.has_value());
  CHECK(owner.answer->has_value());
  return steps;
}

}  // namespace

TEST_CASE("a worker that stops being the owner in any step of a push does not acknowledge the push") {
  auto const steps = steps_of_a_push();
  REQUIRE(steps >= 3);  // the search for NaN, the preparation, the computation
  for (auto done = 0; done < steps; ++done) {
    Owner owner;
    owner.push();
    for (auto step = 0; step < done; ++step) owner.step();
    REQUIRE_FALSE(owner.answer.has_value());
    // Another worker was promoted in epoch 2, and this one becomes its backup.
    CHECK_FALSE(owner.host->assign(placed(3, "backup")).has_value());
    owner.run_all();
    REQUIRE(owner.answer.has_value());
    REQUIRE_FALSE(owner.answer->has_value());
    CHECK(owner.answer->error().code == http::ProblemCode::misdirected);
  }
}

}  // namespace chorus::parameters
