// A coordinator that has said where a parameter is and is silent since, as a stopped process is: what a worker can say
// without it is said soon.
#include <doctest/doctest.h>

#include <condition_variable>
#include <mutex>

#include "http/api/parameters/parameters.hpp"
#include "http/json/json.hpp"
#include "worker/service/testing/live_worker.hpp"

using namespace chorus;
using namespace chorus::service;
using namespace chorus::service::testing;

namespace {

constexpr char const* path = "/v1/parameters/w";
constexpr char const* long_limit = "?timeout_ms=600000";  // longer than the client of these tests waits

// Answers the first request for the parameter, two shards of two f32 on other workers.
class SilentCoordinator {
 public:
  SilentCoordinator() {
    server_.Get(path, [this](auto const&, auto& response) {
      std::unique_lock lock(mutex_);
      if (++asked_ > 1) return changed_.wait(lock, [this] { return is_over_; });
      response.set_content(http::encode(parameter()), "application/json");
    });
    port_ = server_.bind_to_any_port("127.0.0.1");
    thread_ = std::thread([this] { server_.listen_after_bind(); });
  }
  ~SilentCoordinator() {
    {
      std::scoped_lock const lock(mutex_);
      is_over_ = true;
    }
    changed_.notify_all();
    server_.stop();
    thread_.join();
  }
  SilentCoordinator(SilentCoordinator const&) = delete;
  SilentCoordinator& operator=(SilentCoordinator const&) = delete;

  [[nodiscard]] std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  int asked() {
    std::scoped_lock const lock(mutex_);
    return asked_;
  }

 private:
  static api::Parameter parameter() {
    api::Parameter parameter;
    parameter.name = "w";
    parameter.dtype = "f32";
    parameter.shape = {4};
    parameter.group = "g";
    parameter.state = "ready";
    for (std::uint32_t shard = 0; shard < 2; ++shard) {
      auto const worker = "w" + std::to_string(shard);
      auto& owner = parameter.endpoints.emplace_back();
      owner.shard = shard;
      owner.elements = {shard * 2, shard * 2 + 2};
      owner.role = "owner";
      owner.worker = worker;
      owner.url = "http://127.0.0.1:1";
    }
    return parameter;
  }

  httplib::Server server_;
  int port_ = 0;
  std::thread thread_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int asked_ = 0;
  bool is_over_ = false;
};

WorkerOptions at(SilentCoordinator const& coordinator) {
  auto options = test_options("w7");
  options.coordinator = coordinator.url();
  return options;
}

Answer push(LiveWorker const& worker, std::string const& sequence, std::size_t bytes) {
  return worker.put(std::string(path) + "/value" + long_limit, std::string(bytes, '\0'),
                    {{"Chorus-Client", "c"}, {"Chorus-Sequence", sequence}}, "application/octet-stream");
}

}  // namespace

TEST_CASE("a worker describes a parameter as it knows it, and refuses pushes, while the coordinator is silent") {
  SilentCoordinator coordinator;
  LiveWorker const worker(at(coordinator));
  REQUIRE(worker.get(path).status == 200);
  auto const described = worker.get(std::string(path) + long_limit);
  CHECK(described.status == 200);
  CHECK(described.json().at("endpoints").as_array().size() == 2);
  CHECK(push(worker, "0", 8).code() == "length_mismatch");
  CHECK(coordinator.asked() == 3);
  // The coordinator is not asked where the parameter makes no difference.
  CHECK(push(worker, "first", 16).code() == "bad_request");
  CHECK(coordinator.asked() == 3);
}
