// chorus check with an imitated cluster: its requests, what it says of a collective that does not end, and what it
// removes.
#include <doctest/doctest.h>

#include <algorithm>
#include <csignal>
#include <functional>
#include <future>

#include "http/api/collectives/collectives.hpp"
#include "http/api/collectives/groups.hpp"
#include "http/json/json.hpp"
#include "server/cli/testing/test_support.hpp"
#include "server/cli/text/units.hpp"
#include "tests/support/mentions.hpp"
#include "tests/support/process.hpp"

using namespace chorus;
using namespace chorus::cli;
using chorus::testing::mentions;
using chorus::testing::Process;

namespace {

// A coordinator that is its only worker as well. Its collectives have this state, however long one waits.
class SlowCluster {
 public:
  explicit SlowCluster(std::string state) : state_(std::move(state)) {
    server_.Put("/v1/groups/.*", [this](httplib::Request const&, httplib::Response& response) {
      asked("/v1/groups");
      api::Group group;
      group.members.emplace_back().worker = "w0";
      group.members.back().url = url;
      response.set_content(http::encode(group), "application/json");
    });
    server_.Put("/v1/collectives/.*", [this](httplib::Request const& request, httplib::Response& response) {
      asked("/v1/collectives");
      wait += parse_duration(request.get_param_value("wait")).value();
      api::Collective collective;
      collective.state = state_;
      response.set_content(http::encode(collective), "application/json");
    });
    server_.Put("/v1/tensors/.*", [this](auto const&, auto& response) {
      asked("/v1/tensors");
      response.status = 204;
    });
    server_.Get("/v1/tensors/.*", [](auto const&, auto& response) { response.set_content("no sum", "text/plain"); });
    server_.Delete(".*", [this](httplib::Request const& request, httplib::Response& response) {
      removed.push_back(request.path.substr(0, request.path.rfind('/')));
      response.status = 204;
    });
    url = "http://127.0.0.1:" + std::to_string(server_.bind_to_any_port("127.0.0.1"));
    thread_ = std::thread([this] { server_.listen_after_bind(); });
    while (!server_.is_running()) std::this_thread::yield();
  }
  ~SlowCluster() {
    server_.stop();
    thread_.join();
  }
  SlowCluster(SlowCluster const&) = delete;
  SlowCluster& operator=(SlowCluster const&) = delete;

  Run check(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"check", "--ranks", "1", "--coordinator", url});
    return chorus::cli::chorus(arguments);
  }
  // Sends the signal to the command when it puts the first group, tensor or collective. Returns its status.
  int interrupt_at(std::string const& put, int signal) {
    std::promise<Process*> started;
    asked = [&put, signal, process = started.get_future().share()](std::string const& path) {
      if (path == put) process.get()->signal(signal);
    };
    Process process({CHORUS_BINARY, "check", "--ranks", "1", "--coordinator", url});
    started.set_value(&process);
    return process.wait();
  }

  std::string url;
  std::function<void(std::string const& path)> asked = [](std::string const&) {};
  std::chrono::milliseconds wait{0};  // of all requests; read these after the command has ended
  std::vector<std::string> removed;   // without the names, which are random

 private:
  std::string state_;
  httplib::Server server_;
  std::thread thread_;
};

}  // namespace

TEST_CASE("a collective that does not end is no wrong sum") {
  SlowCluster cluster("running");
  auto const run = cluster.check({"--timeout", "2s"});
  CHECK(run.status == 1);
  CHECK(mentions(run.err, "the all_reduce is still running after 7.00 s (deadline_exceeded)"));
  CHECK(cluster.removed == std::vector<std::string>{"/v1/collectives", "/v1/tensors", "/v1/groups"});
}

TEST_CASE("check finds a wrong sum") {
  SlowCluster cluster("succeeded");
  auto const wrong = cluster.check({});
  CHECK(wrong.status == 1);
  CHECK(mentions(wrong.err, "does not hold the sum, bit for bit"));
  CHECK(cluster.removed == std::vector<std::string>{"/v1/tensors", "/v1/groups"});
}

TEST_CASE("check waits until the coordinator must have ended the collective, and at most ten minutes") {
  SlowCluster cluster("running");
  CHECK(cluster.check({}).status == 1);
  CHECK(cluster.wait == std::chrono::seconds(35));
  CHECK(cluster.check({"--timeout", "20m"}).status == 1);
  CHECK(cluster.wait == std::chrono::seconds(635));
}

TEST_CASE("a check that is interrupted leaves nothing behind") {
  auto const removed_after = [](std::string const& put, int signal) {
    SlowCluster cluster("running");
    CHECK(cluster.interrupt_at(put, signal) == 128 + signal);
    return cluster.removed;
  };
  using Paths = std::vector<std::string>;
  CHECK(removed_after("/v1/groups", SIGINT) == Paths{"/v1/groups"});
  CHECK(removed_after("/v1/tensors", SIGTERM) == Paths{"/v1/tensors", "/v1/groups"});
  CHECK(removed_after("/v1/collectives", SIGINT) == Paths{"/v1/collectives", "/v1/tensors", "/v1/groups"});
}
