// The agent against a coordinator that the test scripts.
#include <doctest/doctest.h>

#include <algorithm>
#include <condition_variable>
#include <future>
#include <mutex>

#include "worker/service/testing/live_worker.hpp"

using namespace chorus::service::testing;

namespace {

class FakeCoordinator {
 public:
  explicit FakeCoordinator(bool takes_leases_back = true) : takes_leases_back_(takes_leases_back) {
    server_.Post("/v1/workers", [this](auto const& request, auto& response) { join(request, response); });
    server_.Put(R"(/v1/workers/([^/]+)/lease)",
                [this](auto const& request, auto& response) { renew(request, response); });
    server_.Delete(R"(/v1/workers/([^/]+)/lease)", [this](auto const& request, auto& response) {
      auto const knows_it = takes_leases_back_ && request.get_param_value("incarnation") == "0000000000000abc";
      if (knows_it) note("leave");
      response.status = knows_it ? 204 : 405;
    });
    server_.Delete(R"(/v1/workers/([^/]+))", [this](auto const&, auto& response) {
      note("leave as of old");
      response.status = 204;
    });
    port_ = server_.bind_to_any_port("127.0.0.1");
    thread_ = std::thread([this] { server_.listen_after_bind(); });
  }
  ~FakeCoordinator() {
    answer_renewals(200);
    answer_joins(201);
    server_.stop();
    thread_.join();
  }

  [[nodiscard]] std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }

  static constexpr int breaks_off = 0;  // closes the connection in the middle of the answer
  static constexpr int holds = 1;       // answers when the coordinator ends, or is told to answer otherwise
  // Status of answers to renewals from now on.
  void answer_renewals(int status) {
    std::scoped_lock lock(mutex_);
    renewal_status_ = status;
    changed_.notify_all();
  }
  void answer_joins(int status) {
    std::scoped_lock lock(mutex_);
    join_status_ = status;
    changed_.notify_all();
  }
  // Waits until `what` was asked for `times` times in all.
  bool asked(std::string const& what, int times) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(20),
                             [&] { return std::count(log_.begin(), log_.end(), what) >= times; });
  }
  // The same for `times` times from now on.
  bool asked_again(std::string const& what, int times) {
    auto const before = [&] {
      std::scoped_lock lock(mutex_);
      return static_cast<int>(std::count(log_.begin(), log_.end(), what));
    }();
    return asked(what, before + times);
  }
  void lease(int ms) {
    std::scoped_lock lock(mutex_);
    lease_ms_ = ms;
  }
  boost::json::value last_renewal() {
    std::scoped_lock lock(mutex_);
    return boost::json::parse(last_renewal_);
  }
  boost::json::value last_join() {
    std::scoped_lock lock(mutex_);
    return boost::json::parse(last_join_);
  }

 private:
  void note(std::string what) {
    std::scoped_lock lock(mutex_);
    log_.push_back(std::move(what));
    changed_.notify_all();
  }
  void join(httplib::Request const& request, httplib::Response& response) {
    note("asked to join");
    {
      std::unique_lock lock(mutex_);
      last_join_ = request.body;
      changed_.wait(lock, [&] { return join_status_ != holds; });
      response.status = join_status_;
    }
    auto worker = boost::json::parse(request.body).as_object();
    worker["state"] = "ready";
    worker["lease_ms"] = lease_ms_;
    worker["a_field_of_a_later_release"] = true;
    response.set_content(boost::json::serialize(worker), "application/json");
    note("join");
  }
  void renew(httplib::Request const& request, httplib::Response& response) {
    {
      std::scoped_lock lock(mutex_);
      response.status = renewal_status_;
      last_renewal_ = request.body;
    }
    if (response.status == holds) {
      note("renew");
      std::unique_lock lock(mutex_);
      return changed_.wait(lock, [&] { return renewal_status_ != holds; });
    }
    if (response.status == breaks_off) {
      response.status = 200;
      response.set_content_provider(100, "application/json", [](auto, auto, auto&) { return false; });
      return note("renew");
    }
    auto const known = boost::json::parse(request.body).as_object().contains("incarnation");
    auto const lease = std::to_string(lease_ms_);
    response.set_content(
        known ? R"({"lease_ms":)" + lease + R"(,"code":"epoch_fenced","detail":"another process"})" : "{}",
        "application/json");
    note("renew");
  }

  bool const takes_leases_back_;
  httplib::Server server_;
  int port_ = 0;
  std::thread thread_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int join_status_ = 201;
  int renewal_status_ = 200;
  std::string last_join_, last_renewal_;
  int lease_ms_ = 300;
  std::vector<std::string> log_;
};

chorus::service::WorkerOptions member_of(FakeCoordinator const& coordinator) {
  auto options = test_options("w7", 0xabc);
  options.coordinator = coordinator.url() + "/";
  options.locality.rack = "r1";
  return options;
}

// Polls without sleeping: each poll is an HTTP request.
bool becomes(LiveWorker const& worker, int readyz) {
  auto const deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (std::chrono::steady_clock::now() < deadline)
    if (worker.get("/readyz").status == readyz) return true;
  return false;
}

}  // namespace

TEST_CASE("a worker without a coordinator is ready at once") {
  LiveWorker worker;
  CHECK(worker.get("/readyz").status == 200);
}

TEST_CASE("the agent joins with who and where the worker is, and keeps the lease") {
  FakeCoordinator coordinator;
  LiveWorker worker(member_of(coordinator));
  REQUIRE(coordinator.asked("renew", 3));
  CHECK(worker.get("/readyz").status == 200);
  auto const join = coordinator.last_join();
  CHECK(join.at("id") == "w7");
  CHECK(join.at("incarnation") == "0000000000000abc");
  CHECK(std::string(join.at("url").as_string()) == worker.identity().url);
  CHECK(join.at("locality").at("rack") == "r1");
  CHECK(join.at("locality").at("host") == "testhost");
  CHECK(worker.metrics().find("chorus_lease_renewals_total{result=\"renewed\"}") != std::string::npos);
}

TEST_CASE("a coordinator that is not there yet is tried again, and named meanwhile") {
  auto options = test_options();
  options.coordinator = "http://127.0.0.1:1";
  LiveWorker worker(options);
  auto const unready = worker.get("/readyz");
  CHECK(unready.status == 503);
  CHECK(unready.body.find("127.0.0.1:1") != std::string::npos);
}

TEST_CASE("a join that is refused is tried again") {
  FakeCoordinator coordinator;
  coordinator.answer_joins(502);
  LiveWorker worker(member_of(coordinator));
  REQUIRE(coordinator.asked("join", 2));
  CHECK(worker.get("/readyz").status == 503);
  coordinator.answer_joins(201);
  CHECK(becomes(worker, 200));
}

TEST_CASE("a coordinator that has forgotten the worker is joined again") {
  FakeCoordinator coordinator;
  LiveWorker worker(member_of(coordinator));
  REQUIRE(coordinator.asked("renew", 1));
  CHECK(coordinator.last_join().at("term") == 0);
  coordinator.answer_renewals(404);
  REQUIRE(coordinator.asked("join", 2));
  CHECK(coordinator.last_join().at("term") != 0);
  coordinator.answer_renewals(200);
  CHECK(becomes(worker, 200));
}

TEST_CASE("a lease that cannot be renewed ends, and the worker says that it is not ready") {
  FakeCoordinator coordinator;
  LiveWorker worker(member_of(coordinator));
  REQUIRE(coordinator.asked("renew", 1));
  coordinator.answer_renewals(500);
  CHECK(becomes(worker, 503));
  coordinator.answer_renewals(200);
  CHECK(becomes(worker, 200));
}

TEST_CASE(
    "a coordinator that does not answer is asked as often as before, since it waits for one lease when it is back") {
  FakeCoordinator coordinator;
  LiveWorker worker(member_of(coordinator));
  REQUIRE(coordinator.asked("renew", 1));
  coordinator.answer_renewals(FakeCoordinator::breaks_off);
  // Some 20 within the lease of 300 ms; with pauses that kept doubling there would be only 8 more in the next 20 s.
  CHECK(coordinator.asked("renew", 60));
}

TEST_CASE("a worker whose name a newer process has taken gives up") {
  FakeCoordinator coordinator;
  LiveWorker worker(member_of(coordinator));
  coordinator.answer_renewals(409);
  auto const why = worker.fenced();
  CHECK(why.find("w7") != std::string::npos);
  CHECK(why.find("another process") != std::string::npos);
  CHECK(worker.get("/readyz").status == 503);
  worker.stop();
}

TEST_CASE("trouble is reported at once, and again if the report was lost") {
  FakeCoordinator coordinator;
  coordinator.lease(30000);
  LiveWorker worker(member_of(coordinator));
  REQUIRE(coordinator.asked("join", 1));
  CHECK(becomes(worker, 200));
  worker.report({"g", 4, {{"w3", "00000000000000aa"}}});
  REQUIRE(coordinator.asked("renew", 1));  // long before the lease needs it
  CHECK(coordinator.last_renewal().at("troubles").at(0).at("accused").at(0).at("worker") == "w3");
  worker.report({"g", 5, {}});
  REQUIRE(coordinator.asked("renew", 2));
  CHECK(coordinator.last_renewal().at("troubles").as_array().size() == 1);
}

TEST_CASE("trouble is reported again if the coordinator could not take the report") {
  FakeCoordinator coordinator;
  LiveWorker worker(member_of(coordinator));
  REQUIRE(coordinator.asked("renew", 1));
  coordinator.answer_renewals(503);
  REQUIRE(coordinator.asked_again("renew", 2));
  worker.report({"g", 4, {}});
  for (int times = 0; times < 2; ++times) {
    REQUIRE(coordinator.asked_again("renew", 2));
    CHECK(coordinator.last_renewal().at("troubles").as_array().size() == 1);
  }
  coordinator.answer_renewals(200);
  REQUIRE(coordinator.asked_again("renew", 3));
  CHECK(coordinator.last_renewal().at("troubles").as_array().empty());
}

TEST_CASE("each renewal tells by which lease the worker lives, and the next one repeats what it was told") {
  FakeCoordinator coordinator;
  LiveWorker worker(member_of(coordinator));
  REQUIRE(coordinator.asked("renew", 1));
  CHECK(coordinator.last_renewal().at("lease_ms") == 300);
  coordinator.lease(200);
  REQUIRE(coordinator.asked("renew", 4));
  CHECK(coordinator.last_renewal().at("lease_ms") == 200);
}

TEST_CASE("a worker that stops takes its leave") {
  FakeCoordinator coordinator;
  LiveWorker worker(member_of(coordinator));
  REQUIRE(coordinator.asked("renew", 1));
  worker.stop();
  CHECK(coordinator.asked("leave", 1));
}

TEST_CASE("a worker that stops before it hears that it has joined takes its leave") {
  FakeCoordinator coordinator;
  coordinator.answer_joins(FakeCoordinator::holds);
  LiveWorker worker(member_of(coordinator));
  REQUIRE(coordinator.asked("asked to join", 1));
  auto const stopped = std::async(std::launch::async, [&worker] { worker.stop(); });
  while (worker.get("/readyz").body.find("shutting down") == std::string::npos) {}
  coordinator.answer_joins(201);
  CHECK(coordinator.asked("leave", 1));
  stopped.wait();
}

TEST_CASE("a worker that stops while its lease is being renewed does not complain") {
  FakeCoordinator coordinator;
  coordinator.lease(30000);
  coordinator.answer_renewals(FakeCoordinator::holds);
  LiveWorker worker(member_of(coordinator));
  REQUIRE(coordinator.asked("join", 1));
  CHECK(becomes(worker, 200));
  worker.report({"g", 4, {{"w3", "00000000000000aa"}}});  // which renews the lease at once
  REQUIRE(coordinator.asked("renew", 1));
  worker.stop();
  CHECK(coordinator.asked("leave", 1));
  CHECK(worker.logged().find("cannot renew") == std::string::npos);
}

TEST_CASE("a coordinator of an older release hears of the leave as well") {
  FakeCoordinator coordinator(false);
  LiveWorker worker(member_of(coordinator));
  REQUIRE(coordinator.asked("renew", 1));
  worker.stop();
  CHECK(coordinator.asked("leave as of old", 1));
}
