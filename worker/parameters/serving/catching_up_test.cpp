// A backup that is filled while clients push faster than it takes pushes, in one thread.
#include <doctest/doctest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cstring>
#include <string>

#include "http/server/server.hpp"
#include "worker/parameters/serving/testing/run_story.hpp"
#include "worker/parameters/serving/testing/workplace.hpp"
#include "worker/parameters/shard/testing/assignment.hpp"

namespace chorus::parameters {
namespace {

namespace asio = boost::asio;
using std::chrono::steady_clock;

// A backup that answers each piece and each push only after clients have pushed more, or are held back.
class SlowBackup {
 public:
  static constexpr std::uint64_t most_pushes = 6000;

  SlowBackup() : server_(work_.io.get_executor(), router_, {}, [](http::Exchange const&) {}) {
    std::string const shard = "/v1/parameters/{name}/shards/{shard}";
    auto const add = [this](http::Method method, std::string const& path, std::uint64_t pushes) {
      router_.add(method, path, http::Access::open,
                  [this, pushes](http::Request const&, http::Body&) { return answer_after(pushes); });
    };
    add(http::Method::put, shard + "/arrays/{array...}", 100);
    add(http::Method::post, shard + "/state", 0);
    add(http::Method::post, shard + "/log", 3);
    add(http::Method::post, shard + "/complete", 0);
    auto const port = server_.listen("127.0.0.1", 0);
    REQUIRE(port.has_value());
    auto assignment = testing::plain({1});
    assignment.epoch = 1;
    assignment.role = "owner";
    assignment.fresh = true;
    owner_ = work_.serve(assignment);
    assignment.epoch = 2;
    assignment.fresh = false;
    assignment.backups = {{"w1", "1", "http://127.0.0.1:" + std::to_string(*port)}};
    CHECK_FALSE(owner_->assign(assignment).has_value());
  }
  ~SlowBackup() {
    testing::run_story(work_.io, end());
    owner_.reset();
    work_.join();
  }
  SlowBackup(SlowBackup const&) = delete;
  SlowBackup& operator=(SlowBackup const&) = delete;

  // Each client sends one push after the other until the backup is in step. Returns the number of acknowledged pushes.
  std::uint64_t push_until_in_step(std::size_t clients) {
    std::size_t pushing = clients;
    for (std::size_t i = 0; i < clients; ++i)
      asio::co_spawn(work_.io, push_on("c" + std::to_string(i)), [&pushing](std::exception_ptr failed) {
        CHECK(failed == nullptr);
        --pushing;
      });
    while (pushing > 0) work_.io.run_one();
    return acknowledged_;
  }

 private:
  [[nodiscard]] bool is_in_step() const { return !owner_->status().backups_complete.empty(); }

  asio::awaitable<void> push_on(std::string client) {
    float const one = 1;
    auto const block = work_.pool.acquire(sizeof one).value();
    std::memcpy(block->data(), &one, sizeof one);
    for (std::uint64_t sequence = 0; !is_in_step() && acknowledged_ < most_pushes; ++sequence) {
      Push push;
      push.client = {client, 0};
      push.sequence = sequence;
      push.data = block;
      auto const answer = co_await owner_->push(std::move(push), steady_clock::now() + std::chrono::seconds(60));
      REQUIRE_MESSAGE(answer.has_value(), answer.error().detail);
      ++acknowledged_;
    }
  }
  asio::awaitable<http::Response> answer_after(std::uint64_t pushes) {
    constexpr int turns_until_held_back = 100;
    auto const enough = acknowledged_ + pushes;
    auto last = acknowledged_;
    for (int idle = 0; acknowledged_ < enough && idle < turns_until_held_back; ++idle) {
      co_await asio::post(work_.io, asio::use_awaitable);
      if (std::exchange(last, acknowledged_) != acknowledged_) idle = 0;
    }
    co_return http::Response(204);
  }
  asio::awaitable<void> end() {
    co_await owner_->stop();
    work_.client.close();
    co_await server_.stop();
  }

  testing::Workplace work_;
  http::Router router_;
  http::Server server_;
  std::shared_ptr<ShardHost> owner_;
  std::uint64_t acknowledged_ = 0;
};

}  // namespace

TEST_CASE("a backup comes into step while clients push faster than it takes pushes") {
  SlowBackup backup;
  auto const pushes = backup.push_until_in_step(3);
  // Hundreds of pushes arrive during the image. Afterwards fewer are accepted than are sent to the backup.
  CHECK(pushes > 100);
  CHECK(pushes < 1000);
}

}  // namespace chorus::parameters
