// chorus check with an imitated cluster: its requests, and what it says of a collective that does not end.
#include <doctest/doctest.h>

#include <algorithm>

#include "http/api/collectives/collectives.hpp"
#include "http/api/collectives/groups.hpp"
#include "http/json/json.hpp"
#include "server/cli/testing/test_support.hpp"
#include "tests/support/mentions.hpp"

using namespace chorus;
using namespace chorus::cli;
using chorus::testing::mentions;

namespace {

// A coordinator that is its only worker as well. Its collectives have this state, however long one waits.
class SlowCluster {
 public:
  explicit SlowCluster(std::string state) : state_(std::move(state)) {
    server_.Put("/v1/groups/.*", [this](httplib::Request const&, httplib::Response& response) {
      api::Group group;
      group.members.emplace_back().worker = "w0";
      group.members.back().url = url;
      response.set_content(http::encode(group), "application/json");
    });
    server_.Post("/v1/collectives", [this](httplib::Request const& request, httplib::Response& response) {
      wait = request.get_param_value("wait");
      api::Collective collective;
      collective.state = state_;
      response.set_content(http::encode(collective), "application/json");
    });
    server_.Put("/v1/tensors/.*", [](auto const&, auto& response) { response.status = 204; });
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

  std::string url;
  std::string wait;                  // of the last collective; read these after the command has ended
  std::vector<std::string> removed;  // without the names, which are random

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
  CHECK(cluster.removed == std::vector<std::string>{"/v1/tensors", "/v1/groups"});
}

TEST_CASE("check waits until the coordinator must have ended the collective, and no longer than it lets one wait") {
  SlowCluster cluster("succeeded");
  auto const wrong = cluster.check({});
  CHECK(wrong.status == 1);
  CHECK(mentions(wrong.err, "does not hold the sum, bit for bit"));
  CHECK(cluster.wait == "35000ms");
  CHECK(cluster.check({"--timeout", "20m"}).status == 1);
  CHECK(cluster.wait == "600000ms");
}
