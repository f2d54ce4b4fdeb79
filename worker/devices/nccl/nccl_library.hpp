// NVIDIA's library for collectives among the GPUs of one process or many, if the host has it.
#pragma once

#include <memory>
#include <string>
#include <system_error>

#include "collectives/core/result.hpp"
#include "worker/devices/nccl/nccl_abi.hpp"

namespace chorus::devices {

enum class NcclErrc {
  no_library = 1,  // of this name
  no_nccl,         // a library of this name is something else, or too old
  refused,         // it does not say of which release it is
};

[[nodiscard]] std::error_category const& nccl_category();
[[nodiscard]] inline std::error_code make_error_code(NcclErrc e) { return {static_cast<int>(e), nccl_category()}; }

inline constexpr char const* nccl_library = "libnccl.so.2";

// Its functions, all there. Thread-safe as far as they are. What is loaded stays, for it may have threads.
class NcclLibrary {
 public:
  [[nodiscard]] static Result<std::shared_ptr<NcclLibrary const>> load(std::string const& library = nccl_library);

  [[nodiscard]] std::string const& version() const { return version_; }  // "2.21.5"
  // What it says of a failure. The communicator may be null.
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
  nccl::GetLastError* get_last_error_ = nullptr;  // null in old ones
  std::string version_;
};

}  // namespace chorus::devices

template <>
struct std::is_error_code_enum<chorus::devices::NcclErrc> : std::true_type {};
