#include "worker/devices/nvml/nvml.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <memory>

#include "worker/devices/nvml/nvml_abi.hpp"

namespace chorus::devices {
namespace {

class NvmlCategory final : public std::error_category {
 public:
  char const* name() const noexcept override { return "nvml"; }
  std::string message(int value) const override {
    switch (static_cast<NvmlErrc>(value)) {
      case NvmlErrc::no_library:
        return "no driver of GPUs";
      case NvmlErrc::no_nvml:
        return "not the management library";
      case NvmlErrc::refused:
        return "the driver refused";
    }
    return "unknown NVML error";
  }
};

struct Close {
  void operator()(void* library) const { static_cast<void>(dlclose(library)); }
};
using Library = std::unique_ptr<void, Close>;

// The required functions, and optional ones, which are null if the driver is too old.
struct Functions {
  nvml::Init* init = nullptr;
  nvml::Shutdown* shutdown = nullptr;
  nvml::ErrorString* error_string = nullptr;
  nvml::GetCount* count = nullptr;
  nvml::GetHandle* handle = nullptr;
  nvml::GetText* uuid = nullptr;
  nvml::GetPciInfo* pci_info = nullptr;

  nvml::GetText* name = nullptr;
  nvml::GetNumber* pcie_generation = nullptr;
  nvml::GetNumber* pcie_width = nullptr;
  nvml::GetNumber* bus_width = nullptr;
  nvml::GetClock* max_clock = nullptr;
  nvml::GetOfLink* link_state = nullptr;
  nvml::GetOfLink* link_version = nullptr;
  nvml::GetOfLink* link_peer_type = nullptr;
  nvml::GetLinkPeer* link_peer = nullptr;
};

template <class Function>
bool find(Library const& library, char const* name, Function*& function) {
  function = reinterpret_cast<Function*>(dlsym(library.get(), name));
  return function != nullptr;
}

// Returns the name of a required function that is missing; null if there is none.
char const* find_all(Library const& library, Functions& f) {
  if (!find(library, "nvmlInit_v2", f.init)) return "nvmlInit_v2";
  if (!find(library, "nvmlShutdown", f.shutdown)) return "nvmlShutdown";
  if (!find(library, "nvmlErrorString", f.error_string)) return "nvmlErrorString";
  if (!find(library, "nvmlDeviceGetCount_v2", f.count)) return "nvmlDeviceGetCount_v2";
  if (!find(library, "nvmlDeviceGetHandleByIndex_v2", f.handle)) return "nvmlDeviceGetHandleByIndex_v2";
  if (!find(library, "nvmlDeviceGetUUID", f.uuid)) return "nvmlDeviceGetUUID";
  if (!find(library, "nvmlDeviceGetPciInfo_v3", f.pci_info)) return "nvmlDeviceGetPciInfo_v3";
  find(library, "nvmlDeviceGetName", f.name);
  find(library, "nvmlDeviceGetMaxPcieLinkGeneration", f.pcie_generation);
  find(library, "nvmlDeviceGetMaxPcieLinkWidth", f.pcie_width);
  find(library, "nvmlDeviceGetMemoryBusWidth", f.bus_width);
  find(library, "nvmlDeviceGetMaxClockInfo", f.max_clock);
  find(library, "nvmlDeviceGetNvLinkState", f.link_state);
  find(library, "nvmlDeviceGetNvLinkVersion", f.link_version);
  find(library, "nvmlDeviceGetNvLinkRemoteDeviceType", f.link_peer_type);
  find(library, "nvmlDeviceGetNvLinkRemotePciInfo_v2", f.link_peer);
  return nullptr;
}

// GB/s of one link in one direction, as NVIDIA states it, by nvmlNvlinkVersion_t: 1.0; 2.0, 2.2, 3.0, 3.1, 4.0; 5.0.
// Later versions count as the latest known one.
double gbyte_per_s_of_link(unsigned version) {
  if (version == 0) return 0;
  if (version == 1) return 20;
  return version <= 6 ? 25 : 50;
}

std::string address_of(nvml::PciInfo const& info) {
  char text[32];
  std::snprintf(text, sizeof text, "%04x:%02x:%02x.0", info.domain, info.bus, info.device);
  return text;
}

// Keeps the library initialised while it lives.
class Session {
 public:
  explicit Session(Functions const& functions) : f_(functions) {}
  ~Session() { static_cast<void>(f_.shutdown()); }
  Session(Session const&) = delete;
  Session& operator=(Session const&) = delete;

  Result<NvmlReport> read() {
    unsigned count = 0;
    if (auto const status = f_.count(&count); status != nvml::success)
      return Error(NvmlErrc::refused, "nvmlDeviceGetCount_v2: " + reason(status));
    for (unsigned index = 0; index < count; ++index) read(index);
    return std::move(report_);
  }

 private:
  [[nodiscard]] std::string reason(nvml::Return status) const {
    auto const* const text = f_.error_string(status);
    return text != nullptr ? text : "error " + std::to_string(status);
  }

  // Returns true on success. Records failures, except for features that a device or driver lacks.
  bool said(nvml::Return status, char const* what) {
    if (status == nvml::success) return true;
    if (status != nvml::invalid_argument && status != nvml::not_supported && status != nvml::no_permission &&
        status != nvml::function_not_found)
      report_.refused.push_back("GPU " + std::to_string(index_) + ": " + what + ": " + reason(status));
    return false;
  }

  // A GPU without a UUID and a PCI address is left out.
  void read(unsigned index) {
    index_ = index;
    GpuLocality gpu;
    nvml::PciInfo info{};
    if (!said(f_.handle(index, &device_), "nvmlDeviceGetHandleByIndex_v2") ||
        !read_text(f_.uuid, "nvmlDeviceGetUUID", gpu.uuid) ||
        !said(f_.pci_info(device_, &info), "nvmlDeviceGetPciInfo_v3"))
      return;
    gpu.pci_address = address_of(info);
    read_text(f_.name, "nvmlDeviceGetName", gpu.name);
    gpu.pcie_generation = number(f_.pcie_generation, "nvmlDeviceGetMaxPcieLinkGeneration");
    gpu.pcie_width = number(f_.pcie_width, "nvmlDeviceGetMaxPcieLinkWidth");
    gpu.memory_gbyte_per_s = memory_gbyte_per_s();
    for (unsigned link = 0; link < nvml::links_max; ++link) read_link(link, gpu.nvlinks);
    report_.gpus.push_back(std::move(gpu));
  }

  bool read_text(nvml::GetText* get, char const* what, std::string& text) {
    char buffer[std::max(nvml::uuid_bytes, nvml::name_bytes)] = {};
    if (get == nullptr || !said(get(device_, buffer, sizeof buffer), what)) return false;
    text.assign(buffer, std::find(buffer, buffer + sizeof buffer, '\0'));
    return true;
  }

  unsigned number(nvml::GetNumber* get, char const* what) {
    unsigned value = 0;
    return get != nullptr && said(get(device_, &value), what) ? value : 0;
  }

  // For memory with double data rate, as all these GPUs have.
  double memory_gbyte_per_s() {
    unsigned mhz = 0;
    auto const bits = number(f_.bus_width, "nvmlDeviceGetMemoryBusWidth");
    if (f_.max_clock == nullptr || !said(f_.max_clock(device_, nvml::memory_clock, &mhz), "nvmlDeviceGetMaxClockInfo"))
      return 0;
    return 2e-3 * mhz * bits / 8;
  }

  unsigned of_link(nvml::GetOfLink* get, unsigned link, char const* what, unsigned otherwise) {
    unsigned value = 0;
    return get != nullptr && said(get(device_, link, &value), what) ? value : otherwise;
  }

  // A link with any unknown property is left out, so that the report never claims more than there is.
  void read_link(unsigned link, std::vector<Nvlinks>& all) {
    if (of_link(f_.link_state, link, "nvmlDeviceGetNvLinkState", 0) != nvml::active) return;
    auto const rate = gbyte_per_s_of_link(of_link(f_.link_version, link, "nvmlDeviceGetNvLinkVersion", 0));
    constexpr unsigned remote_unknown = 255;
    auto const type = of_link(f_.link_peer_type, link, "nvmlDeviceGetNvLinkRemoteDeviceType", remote_unknown);
    nvml::PciInfo peer{};
    if (rate == 0 || (type != nvml::remote_gpu && type != nvml::remote_switch) || f_.link_peer == nullptr ||
        !said(f_.link_peer(device_, link, &peer), "nvmlDeviceGetNvLinkRemotePciInfo_v2"))
      return;
    Nvlinks const one{address_of(peer), type == nvml::remote_switch, 1, rate};
    auto const known = std::ranges::find(all, one.to, &Nvlinks::to);
    if (known == all.end()) {
      all.push_back(one);
    } else {
      ++known->links;
      known->gbyte_per_s += rate;
    }
  }

  Functions const& f_;
  NvmlReport report_;
  unsigned index_ = 0;
  nvml::Device device_ = nullptr;
};

}  // namespace

std::error_category const& nvml_category() {
  static NvmlCategory const category;
  return category;
}

Result<NvmlReport> ask_nvml(std::string const& library) {
  Library const loaded(dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL));
  if (loaded == nullptr) {
    auto const* const why = dlerror();
    return Error(NvmlErrc::no_library, why != nullptr ? why : library + " cannot be loaded");
  }
  Functions functions;
  if (auto const* const missing = find_all(loaded, functions); missing != nullptr)
    return Error(NvmlErrc::no_nvml, library + " has no " + missing);
  if (auto const status = functions.init(); status != nvml::success) {
    auto const* const why = functions.error_string(status);
    return Error(NvmlErrc::refused, "nvmlInit_v2: " + (why != nullptr ? why : "error " + std::to_string(status)));
  }
  return Session(functions).read();
}

}  // namespace chorus::devices
