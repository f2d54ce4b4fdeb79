// Health, version and metrics.
#include <doctest/doctest.h>

#include "metrics/build/build.hpp"
#include "worker/service/testing/live_worker.hpp"

using namespace chorus::service::testing;

TEST_CASE("a worker tells its identity") {
  LiveWorker worker;
  auto const about = worker.get("/v1").json();
  CHECK(about.at("worker") == "w0");
  CHECK(about.at("incarnation") == "0000000000000010");
  CHECK(about.at("extensions").is_array());
  for (auto const& [name, value] : chorus::metrics::fields_of(chorus::metrics::this_build()))
    CHECK(std::string(about.at("build").at(name).as_string()) == value);
  CHECK(worker.get("/").json().at("name") == "chorus-worker");
  CHECK(worker.get("/healthz").body == "ok\n");
  CHECK(worker.get("/livez").body == "ok\n");
}

TEST_CASE("metrics tell of tensors and requests") {
  LiveWorker worker;
  worker.put_bytes("x", "12345");
  worker.get("/nowhere");
  auto const scrape = worker.get("/metrics");
  CHECK(scrape.header("Content-Type") == "text/plain; version=0.0.4; charset=utf-8");
  CHECK(scrape.body.find("\nchorus_tensors 1\n") != std::string::npos);
  CHECK(scrape.body.find("\nchorus_tensor_bytes 5\n") != std::string::npos);
  CHECK(scrape.body.find(R"(_count{code_class="2xx",method="PUT",route="/v1/tensors/{name...}"} 1)") !=
        std::string::npos);
  CHECK(scrape.body.find(R"(_count{code_class="4xx",method="GET",route="none"} 1)") != std::string::npos);
}

TEST_CASE("a worker without a name is named after its host and port") {
  auto options = test_options("");
  options.host_name = "node 7";
  LiveWorker worker(options);
  CHECK(worker.identity().id == "node-7-" + std::to_string(worker.port()));
}

TEST_CASE("peers use the advertised host") {
  auto options = test_options();
  options.advertise = "node7.example";
  LiveWorker worker(options);
  CHECK(std::string(worker.get("/v1").json().at("url").as_string()) ==
        "http://node7.example:" + std::to_string(worker.port()));
}

TEST_CASE("an advertised address may have a port of its own, for mapped ports") {
  CHECK(chorus::service::advertised_url("node7.example:8071", "http", 7071).value() == "http://node7.example:8071");
  CHECK(chorus::service::advertised_url("10.0.0.7", "http", 7071).value() == "http://10.0.0.7:7071");
  CHECK(chorus::service::advertised_url("fd00::7", "http", 7071).value() == "http://[fd00::7]:7071");
  CHECK(chorus::service::advertised_url("[fd00::7]", "http", 7071).value() == "http://[fd00::7]:7071");
  CHECK(chorus::service::advertised_url("[fd00::7]:8071", "http", 7071).value() == "http://[fd00::7]:8071");
  for (auto const* text : {"", "node7:", "node7:0", "node7:70000", "node7:80x", ":8071", "http://node7", "node7/a",
                           "node 7", "[fd00::7", "[fd00::7]8071", "me@node7", "node7#1"}) {
    INFO(text);
    REQUIRE(chorus::service::advertised_url(text, "http", 7071).has_error());
    CHECK(chorus::service::advertised_url(text, "http", 7071).error().detail.find("is not HOST or HOST:PORT") !=
          std::string::npos);
  }
}
