// An owner and the answers of its backup, in one thread; the backup is a server with scripted answers.
#include "worker/parameters/serving/shard_host.hpp"
#include "worker/parameters/serving/testing/run_story.hpp"
#include "worker/parameters/serving/testing/workplace.hpp"

#include <doctest/doctest.h>

#include <boost/asio/use_awaitable.hpp>
#include <cstring>
#include <deque>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "http/server/server.hpp"
#include "worker/parameters/shard/testing/assignment.hpp"

namespace chorus::parameters {
namespace {

namespace asio = boost::asio;
using std::chrono::steady_clock;

constexpr char const* log_path = "/v1/parameters/{name}/shards/{shard}/log";

class World {
 public:
  World() : server_(work_.io.get_executor(), router_, {}, [](http::Exchange const&) {}) {
    work_.tools.lease = &lease;
    router_.add(http::Method::post, log_path, http::Access::open,
                [this](http::Request const& request, http::Body&) { return take(request); });
    auto const port = server_.listen("127.0.0.1", 0);
    REQUIRE(port.has_value());
    backup_ = {"w1", "1", "http://127.0.0.1:" + std::to_string(*port)};
    auto begun = assignment(1, true);
    begun.fresh = true;
    owner = work_.serve(begun);
  }
  ~World() {
    testing::run_story(work_.io, end());
    owner.reset();
    work_.join();
  }
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

  // The backup's answers to the next pushes, in order; all later pushes are taken.
  std::deque<std::function<http::Response()>> says;
  std::vector<std::string> epochs;  // of the pushes that the backup has received
  std::shared_ptr<ShardHost> owner;
  OwnerLease lease;

  // Renews the lease by a request that was sent `ago`.
  void renew_lease(std::chrono::milliseconds ago, std::chrono::milliseconds length) {
    lease.renew(steady_clock::now() - ago, length);
  }
  http::Checked<ShardHost::View> pull() {
    http::Checked<ShardHost::View> view = http::Problem(http::ProblemCode::internal, "no answer");
    testing::run_story(work_.io, keep_view(owner->view({}, steady_clock::now() + std::chrono::seconds(10)), &view));
    return view;
  }

  http::Checked<ShardImage> image() {
    http::Checked<ShardImage> image = http::Problem(http::ProblemCode::internal, "no answer");
    testing::run_story(work_.io,
                       keep_image(owner->image_for("c/1", steady_clock::now() + std::chrono::seconds(10)), &image));
    return image;
  }

  http::Checked<api::PushAnswer> push_one(std::uint64_t sequence = 0) {
    Push push;
    push.client = {"c", 0};
    push.sequence = sequence;
    float const one = 1;
    auto const block = work_.pool.acquire(sizeof one).value();
    std::memcpy(block->data(), &one, sizeof one);
    push.data = block;
    http::Checked<api::PushAnswer> answer = http::Problem(http::ProblemCode::internal, "no answer");
    testing::run_story(
        work_.io, keep_answer(owner->push(std::move(push), steady_clock::now() + std::chrono::seconds(10)), &answer));
    return answer;
  }

 private:
  static asio::awaitable<void> keep_answer(asio::awaitable<http::Checked<api::PushAnswer>> asked,
                                           http::Checked<api::PushAnswer>* answer) {
    *answer = co_await std::move(asked);
  }
  static asio::awaitable<void> keep_image(asio::awaitable<http::Checked<ShardImage>> asked,
                                          http::Checked<ShardImage>* image) {
    *image = co_await std::move(asked);
  }
  static asio::awaitable<void> keep_view(asio::awaitable<http::Checked<ShardHost::View>> asked,
                                         http::Checked<ShardHost::View>* view) {
    *view = co_await std::move(asked);
  }
  asio::awaitable<void> end() {
    co_await owner->stop();
    work_.client.close();
    co_await server_.stop();
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

  testing::Workplace work_;
  http::Router router_;
  http::Server server_;
  api::ShardPeer backup_;
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

TEST_CASE("an owner that is fenced in its own epoch serves no request, and keeps its copy") {
  World world;
  REQUIRE(world.push_one(0).has_value());
  world.says.emplace_back(fenced);
  auto const answer = world.push_one(1);
  REQUIRE(answer.has_error());
  CHECK(answer.error().code == http::ProblemCode::misdirected);
  CHECK(world.pull().error().code == http::ProblemCode::misdirected);
  CHECK(world.push_one(1).error().code == http::ProblemCode::misdirected);
  CHECK(world.image().error().code == http::ProblemCode::misdirected);
  CHECK(world.owner->status().unconfirmed);
  CHECK(world.owner->status().complete);
  // The later epoch is the owner's own: the backup was told first.
  CHECK_FALSE(world.owner->assign(world.assignment(2, true)).has_value());
  auto const again = world.push_one(1);
  REQUIRE_MESSAGE(again.has_value(), again.error().detail);
  CHECK(again->version == 2);
  CHECK(world.pull()->version == 2);
}

TEST_CASE("an owner whose lease is over by its own clock takes no push, marks its pulls as unconfirmed, and goes on") {
  using std::chrono::milliseconds;
  World world;
  world.renew_lease(milliseconds(0), milliseconds(60'000));
  REQUIRE(world.push_one(0).has_value());
  CHECK_FALSE(world.pull()->is_unconfirmed);
  // Less than 1 s of a lease of 16 s is left. The coordinator's clock may run faster, so the lease counts as over.
  world.renew_lease(milliseconds(15'500), milliseconds(16'000));
  auto const refused = world.push_one(1);
  REQUIRE(refused.has_error());
  CHECK(refused.error().code == http::ProblemCode::unavailable);
  CHECK(refused.error().retry_after_s == 1);
  CHECK(world.epochs.size() == 1);
  auto const view = world.pull();
  CHECK(view->is_unconfirmed);
  CHECK(view->version == 1);
  CHECK_FALSE(world.owner->view_now().has_value());
  // The lease is renewed in time: no other worker can have got the shard.
  world.renew_lease(milliseconds(0), milliseconds(60'000));
  auto const taken = world.push_one(1);
  REQUIRE_MESSAGE(taken.has_value(), taken.error().detail);
  CHECK(taken->version == 2);
  CHECK_FALSE(world.pull()->is_unconfirmed);
}

TEST_CASE("an owner whose worker's lease was ended takes pushes again only after an order of the present term") {
  using std::chrono::milliseconds;
  World world;
  world.lease.end();
  world.renew_lease(milliseconds(0), milliseconds(60'000));
  CHECK(world.push_one().has_error());
  CHECK(world.owner->status().unconfirmed);
  // An order of the former term, which was delayed for longer than the lease.
  auto late = world.assignment(2, true);
  late.term = 0;
  CHECK_FALSE(world.owner->assign(late).has_value());
  CHECK(world.push_one().has_error());
  auto now = world.assignment(3, true);
  now.term = 1;
  CHECK_FALSE(world.owner->assign(now).has_value());
  CHECK(world.push_one().has_value());
  CHECK_FALSE(world.owner->status().unconfirmed);
  // A coordinator of an earlier release knows no terms.
  world.lease.end();
  world.renew_lease(milliseconds(0), milliseconds(60'000));
  CHECK_FALSE(world.owner->assign(world.assignment(4, true)).has_value());
  CHECK(world.push_one(1).has_value());
}

TEST_CASE("a push that is being sent to the backup when the lease ends counts once, and is acknowledged later") {
  using std::chrono::milliseconds;
  World world;
  world.says.emplace_back([&] {
    world.renew_lease(milliseconds(1000), milliseconds(1000));
    return http::Response(204);
  });
  auto const held = world.push_one();
  REQUIRE(held.has_error());
  CHECK(held.error().code == http::ProblemCode::unavailable);
  world.renew_lease(milliseconds(0), milliseconds(60'000));
  auto const again = world.push_one();
  REQUIRE(again.has_value());
  CHECK(again->duplicate);
  CHECK(again->version == 1);
}

}  // namespace chorus::parameters
