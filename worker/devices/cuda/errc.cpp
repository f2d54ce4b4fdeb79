#include "worker/devices/cuda/errc.hpp"

#include <string>

namespace chorus::devices {
namespace {

class GpuCategory final : public std::error_category {
 public:
  char const* name() const noexcept override { return "gpu"; }
  std::string message(int value) const override {
    switch (static_cast<GpuErrc>(value)) {
      case GpuErrc::unavailable:
        return "no such GPU";
      case GpuErrc::out_of_memory:
        return "out of GPU memory";
      case GpuErrc::bad_handle:
        return "a handle of no memory";
      case GpuErrc::failed:
        return "the GPU refused";
      case GpuErrc::lost:
        return "the GPU was lost";
    }
    return "unknown GPU error";
  }
};

}  // namespace

std::error_category const& gpu_category() {
  static GpuCategory const category;
  return category;
}

}  // namespace chorus::devices
