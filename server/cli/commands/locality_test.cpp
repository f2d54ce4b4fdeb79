// chorus locality with an imitated API server, over TLS with its own certificate.
#include <doctest/doctest.h>

#include <cstdlib>

#include "server/cli/testing/test_support.hpp"
#include "tests/support/scratch_directory.hpp"

using namespace chorus::cli;
using chorus::testing::content_of;
using chorus::testing::ScratchDirectory;
using chorus::testing::write_file;

namespace {

constexpr char const* node = R"({"kind":"Node","metadata":{"name":"node-7","labels":{
  "kubernetes.io/hostname":"node-7","topology.kubernetes.io/region":"eu","topology.kubernetes.io/zone":"eu-1","rack":"r7"}}})";

// An API server with one node, which it shows to callers with the token.
class FakeApiServer {
 public:
  FakeApiServer() {
    auto const key = scratch_ / "key.pem", certificate = scratch_ / "ca.crt";
    auto const made =
        run_program("/usr/bin/openssl", {"req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                                         "-nodes", "-days", "1", "-subj", "/CN=api", "-addext",
                                         "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate});
    REQUIRE_MESSAGE(made.status == 0, made.err);
    write_file(scratch_ / "token", "secret\n");
    server_ = std::make_unique<httplib::SSLServer>(certificate.c_str(), key.c_str());
    server_->Get("/api/v1/nodes/node-7", [](httplib::Request const& request, httplib::Response& response) {
      if (request.get_header_value("Authorization") == "Bearer secret")
        response.set_content(node, "application/json");
      else
        response.status = 403;
    });
    port_ = server_->bind_to_any_port("127.0.0.1");
    thread_ = std::thread([this] { server_->listen_after_bind(); });
  }
  ~FakeApiServer() {
    server_->stop();
    thread_.join();
  }
  FakeApiServer(FakeApiServer const&) = delete;
  FakeApiServer& operator=(FakeApiServer const&) = delete;

  Run ask(std::string const& name, std::vector<std::string> further = {}) const {
    std::vector<std::string> arguments{"locality", "--node", name, "--service-account", scratch_ / ""};
    arguments.insert(arguments.end(), further.begin(), further.end());
    return chorus::cli::chorus(
        arguments, {"KUBERNETES_SERVICE_HOST=127.0.0.1", "KUBERNETES_SERVICE_PORT=" + std::to_string(port_)});
  }
  void change_token() const { write_file(scratch_ / "token", "wrong\n"); }
  [[nodiscard]] std::string file(std::string const& name) const { return scratch_ / name; }

 private:
  ScratchDirectory scratch_;
  std::unique_ptr<httplib::SSLServer> server_;
  int port_ = 0;
  std::thread thread_;
};

}  // namespace

TEST_CASE("a node's labels become a line for a worker") {
  FakeApiServer const api;
  auto const run = api.ask("node-7", {"--rack-label", "rack"});
  CHECK(run.err == "");
  CHECK(run.status == 0);
  CHECK(run.out == "region=eu,zone=eu-1,rack=r7,host=node-7\n");
}

TEST_CASE("a missing label is an empty part; the line may go to a file") {
  FakeApiServer const api;
  CHECK(api.ask("node-7", {"--output", api.file("line")}).status == 0);
  CHECK(content_of(api.file("line")) == "region=eu,zone=eu-1,rack=,host=node-7\n");
}

TEST_CASE("a caller that may not read nodes is told the missing right") {
  FakeApiServer const api;
  api.change_token();
  auto const run = api.ask("node-7");
  CHECK(run.status == 1);
  CHECK(run.err.find("needs a ClusterRole with verb get on nodes") != std::string::npos);
}

TEST_CASE("errors: outside of Kubernetes, an unknown node, an invalid name") {
  FakeApiServer const api;
  CHECK(api.ask("node-8").err.find("answered 404 for node 'node-8'") != std::string::npos);
  CHECK(chorus::cli::chorus({"locality", "--node", "node-7"}).err.find("no pod of Kubernetes") != std::string::npos);
  CHECK(chorus::cli::chorus({"locality", "--node", "../secrets"}).status == 2);
}
