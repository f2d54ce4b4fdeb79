// chorus::Parameters in this process, with coordinator and workers as separate processes.
#include <doctest/doctest.h>

#include <atomic>
#include <cmath>
#include <limits>
#include <numeric>
#include <thread>

#include "tests/support/fleets/parameters.hpp"
#include "worker/api/parameters.hpp"

using namespace chorus::testing;

namespace {

using Floats = std::vector<float>;

chorus::Parameters connect(Cluster const& cluster, std::string const& name) {
  auto parameters =
      chorus::Parameters::connect({.coordinator = cluster.coordinator.url, .client = name, .incarnation = 1});
  REQUIRE(parameters.has_value());
  return std::move(*parameters);
}

chorus::Parameter open(chorus::Parameters& parameters, std::string const& name) {
  auto parameter = parameters.open(name, std::chrono::steady_clock::now() + std::chrono::seconds(10));
  REQUIRE(parameter.has_value());
  return std::move(*parameter);
}

void make(Cluster& cluster, std::string const& request) {
  auto const answer = cluster.coordinator.put("/v1/parameters/w", request);
  REQUIRE_MESSAGE(answer.status == 201, answer.body);
}

}  // namespace

TEST_CASE("push and pull work, and unchanged values are not sent again on request") {
  Cluster cluster(3);
  cluster.make_group("g");
  make(cluster, R"({"group":"g","shape":[300000]})");
  auto parameters = connect(cluster, "a");
  auto w = open(parameters, "w");
  CHECK(w.elements() == 300000);
  Floats gradient(300000), values(300000);
  std::iota(gradient.begin(), gradient.end(), 0.0F);
  auto const pushed = w.push(gradient);
  REQUIRE(pushed.has_value());
  CHECK(pushed->version == 1);
  CHECK_FALSE(pushed->duplicate);
  REQUIRE(w.pull(values).has_value());
  CHECK(values == gradient);
  values[5] = -1;
  auto const unchanged = w.pull(values, {.if_changed = true});
  REQUIRE(unchanged.has_value());
  CHECK(unchanged->unchanged);
  CHECK(values[5] == -1);
  // Other memory may have the same address, as that of a vector that is made in every step.
  auto const again = w.pull(values);
  REQUIRE(again.has_value());
  CHECK_FALSE(again->unchanged);
  CHECK(values == gradient);
  auto const both = w.push_pull(gradient, values);
  REQUIRE(both.has_value());
  CHECK(values[5] == 10);
  REQUIRE(w.put(gradient).has_value());
  auto later = w.prefetch(values, {.min_version = 3});
  REQUIRE(later.get().has_value());
  CHECK(values == gradient);
}

TEST_CASE("rows are pushed and pulled, and invalid arguments are refused before anything is sent") {
  Cluster cluster(2);
  cluster.make_group("g");
  make(cluster, R"({"group":"g","shape":[10,2],"shards":2})");
  auto parameters = connect(cluster, "a");
  auto w = open(parameters, "w");
  std::vector<std::uint64_t> const rows{1, 8};
  REQUIRE(w.push_rows(rows, Floats{1, 2, 3, 4}).has_value());
  Floats some(4);
  REQUIRE(w.pull_rows(rows, some).has_value());
  CHECK(some == Floats{1, 2, 3, 4});
  std::vector<std::uint64_t> const beyond{10}, unsorted{8, 1};
  CHECK(w.push_rows(beyond, Floats{1, 2}).error().code == chorus::ParametersErrc::bad_argument);
  CHECK(w.pull_rows(unsorted, some).error().code == chorus::ParametersErrc::bad_argument);
  CHECK(w.push(Floats(19)).error().code == chorus::ParametersErrc::bad_argument);
  CHECK(w.push(std::vector<double>(20)).error().code == chorus::ParametersErrc::bad_argument);
  auto const soon = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  CHECK(parameters.open("none", soon).error().code == chorus::ParametersErrc::unknown_parameter);
}

TEST_CASE("open() waits for a coordinator that redirects to itself or has no leader, and tells so at the deadline") {
  Cluster cluster(1);
  cluster.make_group("g");
  make(cluster, R"({"group":"g","shape":[10]})");
  httplib::Server standby;
  std::atomic<int> asked = 0;
  std::atomic<bool> is_ever_led = true;
  standby.Get(".*", [&](auto const& request, auto& response) {
    auto const turn = ++asked;
    if (turn == 2 && is_ever_led) {
      response.status = 503;
      return response.set_content(R"({"code":"unavailable","status":503,"detail":"no leader"})", "application/json");
    }
    response.set_redirect((turn > 4 && is_ever_led ? cluster.coordinator.url : "") + request.target, 307);
    response.set_content(R"({"code":"not_leader","status":307,"detail":"a standby"})", "application/json");
  });
  auto const url = "http://127.0.0.1:" + std::to_string(standby.bind_to_any_port("127.0.0.1"));
  std::thread serving([&] { standby.listen_after_bind(); });
  auto parameters = chorus::Parameters::connect({.coordinator = url, .client = "a", .incarnation = 1});
  auto const opened = parameters->open("w", std::chrono::steady_clock::now() + std::chrono::seconds(20));
  is_ever_led = false;
  auto other = chorus::Parameters::connect({.coordinator = url, .client = "b", .incarnation = 1});
  auto const never = other->open("w", std::chrono::steady_clock::now() + std::chrono::milliseconds(500));
  standby.stop();
  serving.join();
  CHECK(opened.has_value());
  REQUIRE(never.has_error());
  CHECK(never.error().code == chorus::ParametersErrc::deadline_exceeded);
  CHECK(never.error().detail == "unavailable: no coordinator leads at present: a standby");
}

TEST_CASE("a program that pushes does not notice the death of an owner") {
  Cluster cluster(3, {"host=h0", "host=h1", "host=h2"});
  cluster.make_group("g");
  make(cluster, R"({"group":"g","shape":[999],"replicas":2,"shards":3})");
  auto parameters = connect(cluster, "a");
  auto w = open(parameters, "w");
  Floats const one(999, 1);
  for (int i = 0; i < 30; ++i) {
    if (i == 10) cluster.kill_worker(1);
    auto const pushed = w.push(one);
    REQUIRE_MESSAGE(pushed.has_value(), pushed.error().detail);
  }
  Floats values(999);
  REQUIRE(w.pull(values).has_value());
  CHECK(values == Floats(999, 30));
}

TEST_CASE("with compressed gradients, the applied values and the residual add up to the pushed values") {
  using Kind = chorus::GradientCompression::Kind;
  Cluster cluster(2);
  cluster.make_group("g");
  auto parameters = connect(cluster, "a");
  for (auto const kind : {Kind::f16, Kind::bf16, Kind::top_k, Kind::two_bit, Kind::int8}) {
    CAPTURE(static_cast<int>(kind));
    make(cluster, R"({"group":"g","shape":[100],"shards":2})");
    auto w = open(parameters, "w");
    REQUIRE(w.compress({.kind = kind, .fraction = 0.1, .threshold = 4}).has_value());
    Floats gradient(100), sum(100), values(100);
    for (int step = 1; step <= 20; ++step) {
      for (std::size_t i = 0; i < gradient.size(); ++i)
        gradient[i] = static_cast<float>((i * 7 + static_cast<std::size_t>(step)) % 11) - 5;
      for (std::size_t i = 0; i < gradient.size(); ++i) sum[i] += gradient[i];
      auto const pushed = step % 2 == 0 ? w.push(gradient) : w.push_pull(gradient, values);
      REQUIRE_MESSAGE(pushed.has_value(), pushed.error().detail);
    }
    REQUIRE(w.pull(values).has_value());
    auto const left = w.residual();
    // The scales of int8 are no powers of two: sums with them are rounded.
    auto const rounding = kind == Kind::int8 ? 20 * 0x1p-24F * 100 : 0.0F;
    for (std::size_t i = 0; i < sum.size(); ++i) CHECK(std::abs(values[i] + left[i] - sum[i]) <= rounding);
    CHECK(cluster.coordinator.erase("/v1/parameters/w").status == 204);
  }
}

TEST_CASE("a refused compressed push is part of the next one, and a gradient that cannot be compressed is not sent") {
  Cluster cluster(2);
  cluster.make_group("g");
  make(cluster, R"({"group":"g","shape":[4],"shards":2,"nonfinite":"reject"})");
  auto parameters = connect(cluster, "a");
  auto w = open(parameters, "w");
  auto const infinite = std::numeric_limits<float>::infinity();
  REQUIRE(w.compress({.kind = chorus::GradientCompression::Kind::two_bit, .threshold = 1}).has_value());
  CHECK(w.push(Floats{1, 2, 3, infinite}).error().code == chorus::ParametersErrc::bad_argument);
  CHECK(w.push(std::vector<double>(4)).error().code == chorus::ParametersErrc::bad_argument);
  REQUIRE(w.push(Floats{1, 2, 3, -4}).has_value());
  Floats values(4);
  REQUIRE(w.pull(values).has_value());
  CHECK(values == Floats{1, 1, 1, -1});
  CHECK(w.residual()[3] == -3);
  // The owners refuse a client that is not on the parameter's list of clients.
  REQUIRE(cluster.coordinator.erase("/v1/parameters/w").status == 204);
  make(cluster, R"({"group":"g","shape":[4],"shards":2,"staleness":0,"clients":["b"]})");
  auto other = open(parameters, "w");
  REQUIRE(other.compress({.kind = chorus::GradientCompression::Kind::f16}).has_value());
  CHECK(other.push(Floats{1, 2, 3, 4}, {.clock = 0}).error().code == chorus::ParametersErrc::refused);
  CHECK(other.residual()[3] == 4);
}

TEST_CASE("a compressed gradient with a NaN is refused as a whole, leaves no residual, and the next one counts") {
  using Kind = chorus::GradientCompression::Kind;
  Cluster cluster(2);
  cluster.make_group("g");
  auto parameters = connect(cluster, "a");
  for (auto const* const shards : {"1", "2"})
    for (auto const kind : {Kind::f16, Kind::int8, Kind::top_k}) {
      CAPTURE(shards);
      CAPTURE(static_cast<int>(kind));
      make(cluster, std::string(R"({"group":"g","shape":[4],"nonfinite":"reject","shards":)") + shards + "}");
      auto w = open(parameters, "w");
      REQUIRE(w.compress({.kind = kind, .fraction = 1}).has_value());
      CHECK(w.push(Floats{1, 2, 3, std::nanf("")}).error().code == chorus::ParametersErrc::refused);
      CHECK(std::ranges::all_of(w.residual(), [](float left) { return left == 0; }));
      auto const next = w.push(Floats{127, 0, 127, 0});
      REQUIRE_MESSAGE(next.has_value(), next.error().detail);
      Floats values(4);
      REQUIRE(w.pull(values).has_value());
      CHECK(values == Floats{127, 0, 127, 0});
      CHECK(cluster.coordinator.erase("/v1/parameters/w").status == 204);
    }
}

TEST_CASE("where NaN is set to 0, the norm for clipping is that of the other elements, over all shards") {
  Cluster cluster(2);
  cluster.make_group("g");
  make(cluster, R"({"group":"g","shape":[3],"shards":2,"nonfinite":"zero",)"
                R"("optimizer":{"name":"sgd","learning_rate":1,"clip_norm":5}})");
  Floats const gradient{6, std::nanf(""), 8};
  auto parameters = connect(cluster, "a");
  auto w = open(parameters, "w");
  REQUIRE(w.push(gradient).has_value());
  Floats values(3);
  REQUIRE(w.pull(values).has_value());
  CHECK(values == Floats{-3, 0, -4});
  ParameterClient other(cluster.worker(0).url, "b");
  REQUIRE(other.push("w", ParameterClient::bytes(gradient)).status == 200);
  REQUIRE(w.pull(values).has_value());
  CHECK(values == Floats{-6, 0, -8});
  REQUIRE(w.compress({.kind = chorus::GradientCompression::Kind::f16}).has_value());
  REQUIRE(w.push(gradient).has_value());
  REQUIRE(w.pull(values).has_value());
  CHECK(values == Floats{-9, 0, -12});
}

TEST_CASE("the norm for clipping is the norm of the whole gradient, over all shards") {
  Cluster cluster(2);
  cluster.make_group("g");
  make(cluster, R"({"group":"g","shape":[2],"shards":2,"optimizer":{"name":"sgd","learning_rate":1,"clip_norm":5}})");
  auto parameters = connect(cluster, "a");
  auto w = open(parameters, "w");
  REQUIRE(w.push(Floats{6, 8}).has_value());
  Floats values(2);
  REQUIRE(w.pull(values).has_value());
  CHECK(values == Floats{-3, -4});
}
