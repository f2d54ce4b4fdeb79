// What a machine with GPUs would export, from one that has none: the families of a worker that reduces on a device, and
// those of NVIDIA's exporter, as numbers that grow. So every query of the dashboard of GPUs is run and has data; what a
// GPU does to them it cannot show.
#pragma once

#include <httplib.h>

#include <atomic>
#include <string>
#include <thread>

namespace chorus::testing {

class GpuExporter {
 public:
  GpuExporter();  // listens on loopback, on a port of its own
  ~GpuExporter();
  GpuExporter(GpuExporter const&) = delete;
  GpuExporter& operator=(GpuExporter const&) = delete;

  [[nodiscard]] std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }

 private:
  httplib::Server server_;
  std::atomic<unsigned> scrapes_ = 0;
  int port_;
  std::thread thread_;
};

}  // namespace chorus::testing
