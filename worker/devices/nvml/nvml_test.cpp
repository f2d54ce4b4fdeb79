// A host's GPUs as the double of the management library reports them.
#include "worker/devices/nvml/nvml.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "collectives/topology/dgx1.hpp"
#include "worker/devices/nvml/testing/double_host.hpp"

using namespace chorus;
using namespace chorus::devices;
using testing::DoubleHost;
using testing::NvmlHost;

namespace {

// Checks that a report contains only true links, rates and addresses; some may be missing.
void check_no_more_than(GpuLocality const& said, GpuLocality const& truth) {
  CHECK(said.uuid == truth.uuid);
  CHECK(said.pci_address == truth.pci_address);
  CHECK((said.name.empty() || said.name == truth.name));
  CHECK((said.memory_gbyte_per_s == 0 || said.memory_gbyte_per_s == truth.memory_gbyte_per_s));
  CHECK((said.pcie_generation == 0 || said.pcie_generation == truth.pcie_generation));
  CHECK((said.pcie_width == 0 || said.pcie_width == truth.pcie_width));
  for (auto const& links : said.nvlinks) {
    auto const real = std::ranges::find(truth.nvlinks, links.to, &Nvlinks::to);
    REQUIRE(real != truth.nvlinks.end());
    CHECK(links.is_switch == real->is_switch);
    CHECK(links.links <= real->links);
    CHECK(links.gbyte_per_s <= real->gbyte_per_s);
  }
}

void check_no_more_than(NvmlReport const& said, std::vector<GpuLocality> const& truth) {
  for (auto const& gpu : said.gpus) {
    auto const real = std::ranges::find(truth, gpu.uuid, &GpuLocality::uuid);
    REQUIRE(real != truth.end());
    check_no_more_than(gpu, *real);
  }
}

}  // namespace

TEST_CASE("the eight GPUs of a p3.16xlarge, with single and double NVLinks") {
  DoubleHost const host(NvmlHost::p3_16xlarge);
  auto const report = ask_nvml(NVML_DOUBLE).value();
  CHECK(report.gpus == topology::dgx1_gpus());
  CHECK(report.refused.empty());
  CHECK(host.open_sessions() == 0);
}

TEST_CASE("GPUs that are wired to switches") {
  DoubleHost const host(NvmlHost::hgx_h100);
  auto const report = ask_nvml(NVML_DOUBLE).value();
  REQUIRE(report.gpus.size() == 4);
  for (auto const& gpu : report.gpus) {
    CHECK(gpu.memory_gbyte_per_s == doctest::Approx(3352.32));
    CHECK(gpu.nvlinks == std::vector<Nvlinks>{{"0000:00:10.0", true, 5, 125},
                                              {"0000:00:11.0", true, 5, 125},
                                              {"0000:00:12.0", true, 4, 100},
                                              {"0000:00:13.0", true, 4, 100}});
  }
}

TEST_CASE("features that a GPU lacks, and GPUs of other processes, are no failures") {
  DoubleHost const host(NvmlHost::one_old_gpu);
  auto const report = ask_nvml(NVML_DOUBLE).value();
  REQUIRE(report.gpus.size() == 1);
  CHECK(report.gpus[0].nvlinks.empty());
  CHECK(report.refused.empty());
}

TEST_CASE("a driver without a GPU") {
  DoubleHost const host(NvmlHost::no_gpu);
  CHECK(ask_nvml(NVML_DOUBLE).value().gpus.empty());
}

TEST_CASE("no driver is an answer, and so is a library that is something else") {
  auto const none = ask_nvml("libno-such-driver.so.1");
  REQUIRE(none.has_error());
  CHECK(none.error().code == NvmlErrc::no_library);
  CHECK(none.error().detail.find("libno-such-driver.so.1") != std::string::npos);
  auto const other = ask_nvml("libm.so.6");
  REQUIRE(other.has_error());
  CHECK(other.error().code == NvmlErrc::no_nvml);
  CHECK(other.error().detail == "libm.so.6 has no nvmlInit_v2");
}

TEST_CASE("whichever call fails, the report is true and names the failure, and the library is shut down") {
  DoubleHost const host(NvmlHost::p3_16xlarge);
  host.fail_after(-1);
  auto const truth = ask_nvml(NVML_DOUBLE).value().gpus;
  auto const calls = host.calls();
  REQUIRE(calls > 8 * 6 * 4);
  for (int nth = 0; nth < calls; ++nth) {
    host.fail_after(nth);
    auto const report = ask_nvml(NVML_DOUBLE);
    CHECK(host.open_sessions() == 0);
    if (report.has_error()) {
      CHECK(report.error().code == NvmlErrc::refused);
      CHECK(report.error().detail.ends_with(": Unknown Error"));
      CHECK(nth < 2);
      continue;
    }
    check_no_more_than(*report, truth);
    CHECK(report->refused.size() == (nth + 1 == calls ? 0 : 1));  // the last call shuts the library down
  }
}
