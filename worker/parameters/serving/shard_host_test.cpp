// An owner and what its backups answer, in one thread; the backup is a server that says what the story wants.
#include "worker/parameters/serving/shard_host.hpp"

#include <doctest/doctest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cstring>
#include <deque>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "http/client.hpp"
#include "http/server.hpp"
#include "worker/parameters/shard/testing/assignment.hpp"

namespace chorus::parameters {
namespace {

namespace asio = boost::asio;
using std::chrono::steady_clock;

constexpr char const* log_path = "/v1/parameters/{name}/shards/{shard}/log";

class World {
 public:
  World() : client_(io_.get_executor()), server_(io_.get_executor(), router_, {}, [](http::Exchange const&) {}) {
    router_.add(http::Method::post, log_path, http::Access::open,
                [this](http::Request const& request, http::Body&) { return take(request); });
    auto const port = server_.listen("127.0.0.1", 0);
    REQUIRE(port.has_value());
    backup_ = {"w1", "1", "http://127.0.0.1:" + std::to_string(*port)};
    auto begun = assignment(1, true);
    begun.fresh = true;
    auto spec = ShardSpec::from(begun);
    REQUIRE(spec.has_value());
    auto shard = Shard::make(std::move(*spec), pool_);
    REQUIRE(shard.has_value());
    owner = std::make_shared<ShardHost>(tools_, std::move(*shard), begun);
  }
  ~World() { run(end()); }
  World(World const&) = delete;
  World& operator=(World const&) = delete;

  [[nodiscard]] api::ShardAssignment assignment(std::uint32_t epoch, bool continues) const {
    auto assignment = testing::plain({1});
    assignment.epoch = epoch;
    assignment.role = "owner";
    assignment.continues = continues;
    assignment.backups = {backup_};
    return assignment;
  }

  // What the backup says to the next pushes, one after the other; to all others: taken.
  std::deque<std::function<http::Response()>> says;
  std::vector<std::string> epochs;  // of what the backup was sent
  std::shared_ptr<ShardHost> owner;

  http::Checked<api::PushAnswer> push_one() {
    Push push;
    push.client = {"c", 0};
    float const one = 1;
    auto const block = pool_.acquire(sizeof one).value();
    std::memcpy(block->data(), &one, sizeof one);
    push.data = block;
    http::Checked<api::PushAnswer> answer = http::Problem(http::ProblemCode::internal, "no answer");
    run(keep_answer(owner->push(std::move(push), steady_clock::now() + std::chrono::seconds(10)), &answer));
    return answer;
  }

 private:
  static asio::awaitable<void> keep_answer(asio::awaitable<http::Checked<api::PushAnswer>> asked,
                                           http::Checked<api::PushAnswer>* answer) {
    *answer = co_await std::move(asked);
  }
  asio::awaitable<void> end() {
    co_await owner->stop();
    client_.close();
    co_await server_.stop();
  }
  void run(asio::awaitable<void> story) {
    bool is_over = false;
    asio::co_spawn(io_, std::move(story), [&is_over](std::exception_ptr failed) {
      CHECK(failed == nullptr);
      is_over = true;
    });
    while (!is_over) io_.run_one();
  }
  asio::awaitable<http::Response> take(http::Request const& request) {
    epochs.emplace_back(request.fields.find("Chorus-Epoch").value_or(""));
    auto answer = http::Response(204);
    if (!says.empty()) {
      auto const say = std::move(says.front());
      says.pop_front();
      answer = say();
    }
    co_return answer;
  }

  asio::io_context io_;
  asio::thread_pool threads_{1};
  tensors::Pool pool_{1 << 20, 4 << 20};
  http::Client client_;
  http::Router router_;
  http::Server server_;
  api::ShardPeer backup_;
  ShardTools tools_{io_.get_executor(), threads_, {client_, http::MessageChecksums::off}, pool_, {}};
};

http::Response fenced() { return http::Problem(http::ProblemCode::epoch_fenced, "epoch 1 of shard 0 of w is over"); }

}  // namespace

TEST_CASE(
    "a push on its way when the next epoch begins is fenced by a backup that has heard of it first, and sent again") {
  World world;
  world.says.push_back([&] {
    CHECK_FALSE(world.owner->assign(world.assignment(2, true)).has_value());
    return fenced();
  });
  auto const answer = world.push_one();
  REQUIRE_MESSAGE(answer.has_value(), answer.error().detail);
  CHECK(answer->epoch == 2);
  CHECK(world.epochs == std::vector<std::string>{"1", "2"});
  CHECK(world.owner->role() == ShardHost::Role::owner);
}

TEST_CASE("an owner that is fenced under the epoch that it knows is none any more") {
  World world;
  world.says.emplace_back(fenced);
  auto const answer = world.push_one();
  REQUIRE(answer.has_error());
  CHECK(answer.error().code == http::ProblemCode::misdirected);
  CHECK(world.owner->role() == ShardHost::Role::backup);
}

}  // namespace chorus::parameters
