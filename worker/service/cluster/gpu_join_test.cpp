// What a joining worker tells a coordinator about its GPUs.
#include <doctest/doctest.h>

#include <future>
#include <utility>

#include "worker/devices/nvml/testing/double_host.hpp"
#include "worker/service/testing/doubles.hpp"

using namespace chorus::service::testing;
using chorus::devices::testing::DoubleHost;
using chorus::devices::testing::NvmlHost;

namespace {

// A coordinator that one worker joins.
class Listener {
 public:
  Listener() : port_(server_.bind_to_any_port("127.0.0.1")) {
    server_.Post("/v1/workers", [this](auto const& request, auto& response) {
      if (!std::exchange(heard_, true)) join_.set_value(request.body);
      response.status = 503;
    });
    thread_ = std::thread([this] { server_.listen_after_bind(); });
  }
  ~Listener() {
    server_.stop();
    thread_.join();
  }

  [[nodiscard]] boost::json::value join() { return boost::json::parse(join_.get_future().get()); }
  [[nodiscard]] chorus::service::WorkerOptions member(std::string const& nvml_library) const {
    auto options = test_options();
    options.coordinator = "http://127.0.0.1:" + std::to_string(port_);
    options.nvml_library = nvml_library;
    return options;
  }

 private:
  httplib::Server server_;
  int const port_;
  bool heard_ = false;  // the worker asks again when it was answered
  std::promise<std::string> join_;
  std::thread thread_;
};

}  // namespace

TEST_CASE("a worker that joins tells of its GPUs, and of what NVML says they are wired to") {
  DoubleHost const host(NvmlHost::p3_16xlarge);
  Listener coordinator;
  GpuWorker worker(2, coordinator.member(NVML_DOUBLE));
  auto const join = coordinator.join();
  auto const& gpus = join.at("gpus").as_array();
  REQUIRE(gpus.size() == 2);
  CHECK(gpus[1].at("uuid") == "GPU-00000000-0000-0000-0000-000000000001");
  CHECK(gpus[1].at("pci_address") == "0000:00:18.0");
  CHECK(gpus[1].at("nvlinks").as_array().size() == 4);
  CHECK(host.open_sessions() == 0);
}

TEST_CASE("a worker whose host has no NVML tells of its GPUs without links") {
  Listener coordinator;
  GpuWorker worker(1, coordinator.member("libno-such-driver.so.1"));
  auto const join = coordinator.join();
  CHECK(join.at("gpus").at(0).at("pci_address") == "0000:00:00.0");
  CHECK(join.at("gpus").at(0).at("nvlinks").as_array().empty());
}
