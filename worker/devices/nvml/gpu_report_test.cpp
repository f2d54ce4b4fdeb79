#include "worker/devices/nvml/gpu_report.hpp"

#include <doctest/doctest.h>

#include "collectives/topology/dgx1.hpp"
#include "worker/devices/nvml/testing/double_host.hpp"

using namespace chorus;
using namespace chorus::devices;
using testing::DoubleHost;
using testing::NvmlHost;

namespace {

GpuInfo info(GpuLocality const& gpu) { return {0, gpu.name, gpu.uuid, gpu.pci_address, 16 << 20, 80}; }

}  // namespace

TEST_CASE("a worker reports the GPUs that it uses, in its order, with all that they are wired to") {
  DoubleHost const host(NvmlHost::p3_16xlarge);
  auto const all = topology::dgx1_gpus();
  std::vector<GpuInfo> const used{info(all[6]), info(all[1])};
  auto const report = report_gpus(used, NVML_DOUBLE);
  CHECK(report.gpus == std::vector<GpuLocality>{all[6], all[1]});
  CHECK(report.unknown.empty());
}

TEST_CASE("a worker without GPUs does not load the management library") {
  DoubleHost const host(NvmlHost::p3_16xlarge);
  CHECK(report_gpus({}, NVML_DOUBLE).gpus.empty());
  CHECK(host.calls() == 0);
}

TEST_CASE("GPUs that the driver does not describe are reported without links, with a line for the log") {
  GpuInfo const used[]{info(topology::dgx1_gpus()[2])};
  auto const report = report_gpus(used, "libno-such-driver.so.1");
  REQUIRE(report.gpus.size() == 1);
  CHECK(report.gpus[0].uuid == used[0].uuid);
  CHECK(report.gpus[0].pci_address == "0000:00:19.0");
  CHECK(report.gpus[0].nvlinks.empty());
  CHECK(report.unknown.size() == 1);

  DoubleHost const host(NvmlHost::no_gpu);
  CHECK(report_gpus(used, NVML_DOUBLE).gpus == report.gpus);
}
