// An owner answers pushes when its log has them on the disk, and says why not.
#include "worker/parameters/serving/durability/owner_log.hpp"

#include <doctest/doctest.h>

#include <boost/asio/use_awaitable.hpp>
#include <string>

#include "worker/parameters/checkpoints/testing/simulated_disk.hpp"
#include "worker/parameters/log/recovery.hpp"
#include "worker/parameters/serving/testing/run_story.hpp"
#include "worker/parameters/serving/testing/workplace.hpp"
#include "worker/parameters/shard/testing/assignment.hpp"
#include "worker/parameters/shard/testing/pushed_shard.hpp"

namespace chorus::parameters {
namespace {

namespace asio = boost::asio;
using checkpoints::testing::SimulatedDisk;
using http::ProblemCode;
using std::chrono::steady_clock;

steady_clock::time_point in_time() { return steady_clock::now() + std::chrono::seconds(20); }

api::ShardAssignment owned() {
  auto assignment = testing::plain({1});
  assignment.epoch = 1;
  assignment.role = "owner";
  assignment.fresh = true;
  return assignment;
}

// An owner of one element whose log is on a simulated disk.
class LoggedOwner {
 public:
  LoggedOwner() { place_.tools.logs = {&disk_, "disk", 1 << 20}; }
  ~LoggedOwner() {
    testing::run_story(place_.io, end());
    place_.join();
    place_.client.close();
  }
  LoggedOwner(LoggedOwner const&) = delete;
  LoggedOwner& operator=(LoggedOwner const&) = delete;

  void begin_log() {
    log = std::make_shared<OwnerLog>(place_.tools, copy_, tenure_, queue_, tasks_);
    tasks_.spawn("log", OwnerLog::keep(log));
  }
  // Applies the next push, and adds it to the log.
  PushQueue::JobPtr push() {
    testing::run_story(place_.io, apply());
    return acknowledge();
  }
  // Asks for the answer to the last push once more.
  PushQueue::JobPtr acknowledge() {
    auto job = std::make_shared<PushJob>();
    log->answer_when_durable(job, {});
    return job;
  }
  http::Checked<api::PushAnswer> answer_of(PushQueue::JobPtr const& job) {
    testing::run_story(place_.io, queue_.until_answered(job, in_time()));
    return job->answer.value_or(http::Problem(ProblemCode::internal, "no answer"));
  }
  void until_based() { testing::run_story(place_.io, until(true)); }
  void until_failed() { testing::run_story(place_.io, until(false)); }
  // Returns the position of the shard that is recovered after a crash.
  [[nodiscard]] std::uint64_t recovered_position() {
    auto crashed = files->after_crash(1);
    auto const shard = recover(crashed, log_directory("disk", "w", 0), copy_.spec(), place_.tools.memory());
    REQUIRE(shard.has_value());
    return (*shard)->position();
  }

  std::shared_ptr<SimulatedDisk> files = std::make_shared<SimulatedDisk>();
  std::shared_ptr<OwnerLog> log;

 private:
  asio::awaitable<void> apply() {
    auto const position = copy_.shard().position();
    auto const push = testing::gradient("c", position, {1});
    auto const problem = co_await copy_.apply(push, Error());
    CHECK_FALSE(problem.has_value());
    log->add({position, push});
  }
  asio::awaitable<void> until(bool has_base) {
    while (has_base ? !log->has_base() : !log->failure()) co_await changed_.wait_until(in_time());
  }
  asio::awaitable<void> end() {
    log->end(http::Problem(ProblemCode::misdirected, "the owner has gone"));
    log = nullptr;
    tasks_.cancel();
    co_await tasks_.join();
    CHECK((co_await disk_.stop(in_time())).empty());
  }

  testing::Workplace place_;
  Disk disk_{place_.io.get_executor(), files, {}};
  http::Condition changed_{place_.io.get_executor()};
  Tenure tenure_{"shard 0 of w", nullptr, owned()};
  ShardCopy copy_{place_.tools, testing::make(owned()), tenure_, changed_, [](std::string const&) {}};
  PushQueue queue_{place_.tools, tenure_, changed_};
  http::TaskGroup tasks_{place_.io.get_executor()};
};

}  // namespace

TEST_CASE("a push is answered when it is on the disk, and a crash does not lose it") {
  LoggedOwner owner;
  owner.begin_log();
  owner.until_based();
  auto const job = owner.push();
  CHECK_FALSE(job->answer.has_value());
  CHECK(owner.answer_of(job).has_value());
  CHECK(owner.recovered_position() == 1);
}

TEST_CASE("pushes on a full disk are refused, and acknowledged when a base has them") {
  LoggedOwner owner;
  owner.files->fail_at(0, std::errc::no_space_on_device);
  owner.begin_log();
  owner.until_failed();
  auto const refused = owner.answer_of(owner.push());
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code == ProblemCode::unavailable);
  CHECK(refused.error().detail.starts_with("the log of shard 0 of w cannot be written: "));
  owner.until_based();
  CHECK_FALSE(owner.log->failure().has_value());
  CHECK(owner.answer_of(owner.acknowledge()).has_value());
  CHECK(owner.recovered_position() == 1);
}

TEST_CASE("the end of an ownership refuses the pushes that are not on the disk") {
  LoggedOwner owner;
  owner.begin_log();
  owner.until_based();
  auto const job = owner.push();
  owner.log->end(http::Problem(ProblemCode::misdirected, "another worker owns the shard"));
  REQUIRE(job->answer.has_value());
  CHECK(job->answer->error().code == ProblemCode::misdirected);
}

}  // namespace chorus::parameters
