#include "worker/devices/nccl/nccl_library.hpp"

#include <dlfcn.h>

namespace chorus::devices {
namespace {

class NcclCategory final : public std::error_category {
 public:
  char const* name() const noexcept override { return "nccl"; }
  std::string message(int value) const override {
    switch (static_cast<NcclErrc>(value)) {
      case NcclErrc::no_library:
        return "no NCCL";
      case NcclErrc::no_nccl:
        return "not NCCL";
      case NcclErrc::refused:
        return "NCCL refused";
    }
    return "unknown NCCL error";
  }
};

template <class Function>
bool find(void* library, char const* name, Function*& function) {
  function = reinterpret_cast<Function*>(dlsym(library, name));
  return function != nullptr;
}

// 2.8.4 is 2804, 2.9.0 is 20900.
std::string text_of(int version) {
  int const major = version < 10000 ? 1000 : 10000;
  return std::to_string(version / major) + "." + std::to_string(version % major / 100) + "." +
         std::to_string(version % 100);
}

}  // namespace

std::error_category const& nccl_category() {
  static NcclCategory const category;
  return category;
}

Result<std::shared_ptr<NcclLibrary const>> NcclLibrary::load(std::string const& library) {
  auto* const loaded = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (loaded == nullptr) {
    auto const* const why = dlerror();
    return Error(NcclErrc::no_library, why != nullptr ? why : library + " cannot be loaded");
  }
  auto const made = std::make_shared<NcclLibrary>();
  auto& f = *made;
  char const* missing = nullptr;
  auto const need = [&](char const* name, auto*& function) {
    if (!find(loaded, name, function) && missing == nullptr) missing = name;
  };
  need("ncclGetVersion", f.get_version_);
  need("ncclGetErrorString", f.get_error_string_);
  need("ncclCommInitAll", f.comm_init_all);
  need("ncclCommDestroy", f.comm_destroy);
  need("ncclCommAbort", f.comm_abort);
  need("ncclCommGetAsyncError", f.comm_get_async_error);
  need("ncclGroupStart", f.group_start);
  need("ncclGroupEnd", f.group_end);
  need("ncclReduce", f.reduce);
  need("ncclBroadcast", f.broadcast);
  find(loaded, "ncclGetLastError", f.get_last_error_);
  static_cast<void>(dlclose(loaded));
  if (missing != nullptr) return Error(NcclErrc::no_nccl, library + " has no " + missing);
  int version = 0;
  if (auto const status = f.get_version_(&version); status != nccl::success)
    return Error(NcclErrc::refused, "ncclGetVersion: " + f.words(status, nullptr));
  f.version_ = text_of(version);
  return std::shared_ptr<NcclLibrary const>(made);
}

std::string NcclLibrary::words(nccl::Return status, nccl::Communicator communicator) const {
  auto const* const text = get_error_string_(status);
  std::string words = text != nullptr ? text : "error " + std::to_string(status);
  auto const* const more = get_last_error_ != nullptr ? get_last_error_(communicator) : nullptr;
  if (more != nullptr && *more != '\0') words.append(" (").append(more).append(")");
  return words;
}

}  // namespace chorus::devices
