// NCCL, NVIDIA's library for collectives among GPUs, loaded if the host has it.
#pragma once

#include <memory>
#include <string>
#include <system_error>

#include "collectives/core/result.hpp"
#include "worker/devices/nccl/nccl_abi.hpp"

namespace chorus::devices {

enum class NcclErrc {
  no_library = 1,  // no library of this name
  no_nccl,         // the library is not NCCL, or is too old
  refused,         // the library does not report its version
};

[[nodiscard]] std::error_category const& nccl_category();
[[nodiscard]] inline std::error_code make_error_code(NcclErrc e) { return {static_cast<int>(e), nccl_category()}; }

inline constexpr char const* nccl_library = "libnccl.so.2";

// NCCL's functions, none of them null. As thread-safe as NCCL. The library is never unloaded, because it may have
// threads.
class NcclLibrary {
 public:
  [[nodiscard]] static Result<std::shared_ptr<NcclLibrary const>> load(std::string const& library = nccl_library);

  [[nodiscard]] std::string const& version() const { return version_; }  // "2.21.5"
  // Returns NCCL's message about a failure. The communicator may be null.
  [[nodiscard]] std::string words(nccl::Return status, nccl::Communicator communicator) const;

  nccl::CommInitAll* comm_init_all = nullptr;
  nccl::CommEnd* comm_destroy = nullptr;
  nccl::CommEnd* comm_abort = nullptr;
  nccl::CommGetAsyncError* comm_get_async_error = nullptr;
  nccl::Group* group_start = nullptr;
  nccl::Group* group_end = nullptr;
  nccl::Reduce* reduce = nullptr;
  nccl::Broadcast* broadcast = nullptr;

 private:
  nccl::GetVersion* get_version_ = nullptr;
  nccl::GetErrorString* get_error_string_ = nullptr;
  nccl::GetLastError* get_last_error_ = nullptr;  // null in old versions
  std::string version_;
};

}  // namespace chorus::devices

template <>
struct std::is_error_code_enum<chorus::devices::NcclErrc> : std::true_type {};
