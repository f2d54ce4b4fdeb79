#include "tests/monitoring/gpu_exporter.hpp"

#include <stdexcept>

#include "metrics/catalogue/catalogue.hpp"

namespace chorus::testing {
namespace {

// One series of a family of the catalogue, under the labels that it has there.
std::string series(metrics::Id id, std::initializer_list<std::string> label_values, double value) {
  auto const& metric = metrics::describe(id);
  if (label_values.size() != metric.labels().size())
    throw std::logic_error(std::string(metric.name) + ": other labels");
  auto text = "# TYPE " + std::string(metric.name) + " " + std::string(metrics::name(metric.type)) + "\n" +
              std::string(metric.name) + "{";
  auto label = metric.labels().begin();
  for (auto const& one : label_values) text += std::string(*label++) + "=\"" + one + "\",";
  text.back() = '}';
  return text + " " + std::to_string(value) + "\n";
}

// As dcgm-exporter names and labels them.
std::string dcgm(std::string const& name, std::string const& type, double value) {
  return "# TYPE " + name + " " + type + "\n" + name +
         R"({gpu="0",UUID="GPU-0",device="nvidia0",modelName="double",Hostname="h0"} )" + std::to_string(value) + "\n";
}

std::string exposition(double seconds) {
  return series(metrics::Id::reduce_bytes, {"cuda", "f32"}, 1e9 * seconds) +
         series(metrics::Id::reduce_seconds, {"cuda", "f32"}, 0.1 * seconds) +
         series(metrics::Id::gpu_busy, {"cuda:0", "compute"}, 0.2 * seconds) +
         series(metrics::Id::gpu_copied_bytes, {"cuda:0", "in"}, 1e8 * seconds) +
         series(metrics::Id::gpu_stepped_bytes, {"cuda:0"}, 1e7 * seconds) +
         series(metrics::Id::gpu_kernels, {"cuda:0"}, 100 * seconds) + series(metrics::Id::gpu_lost, {"cuda:0"}, 0) +
         series(metrics::Id::gpu_arena, {"cuda:0"}, 1e9) + series(metrics::Id::gpu_arena_used, {"cuda:0"}, 1e8) +
         series(metrics::Id::gpu_pinned, {"cuda:0"}, 1e6) + series(metrics::Id::gpu_pinned_limit, {"cuda:0"}, 1e7) +
         dcgm("DCGM_FI_DEV_GPU_UTIL", "gauge", 40) + dcgm("DCGM_FI_DEV_FB_USED", "gauge", 1024) +
         dcgm("DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", "counter", 1e6 * seconds) +
         dcgm("DCGM_FI_DEV_XID_ERRORS", "gauge", 0);
}

}  // namespace

GpuExporter::GpuExporter() {
  server_.Get("/metrics", [this](httplib::Request const&, httplib::Response& response) {
    response.set_content(exposition(static_cast<double>(++scrapes_)), "text/plain; version=0.0.4");
  });
  port_ = server_.bind_to_any_port("127.0.0.1");
  if (port_ < 0) throw std::runtime_error("no free port");
  thread_ = std::thread([this] { server_.listen_after_bind(); });
}

GpuExporter::~GpuExporter() {
  // stop() before the thread has come to listen would be forgotten.
  while (!server_.is_running()) std::this_thread::yield();
  server_.stop();
  thread_.join();
}

}  // namespace chorus::testing
