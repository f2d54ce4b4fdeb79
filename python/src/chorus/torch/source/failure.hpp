// What the library says of a failed call, as an exception.
#pragma once

#include <chorus/chorus.h>
#include <torch/version.h>

#include <stdexcept>
#include <string>

#if TORCH_VERSION_MAJOR >= 2
#include <c10/util/Exception.h>
#endif

namespace chorus::process_group {

// For one thread.
class Failure {
 public:
  Failure() : error_(chorus_error_create()) {}
  ~Failure() { chorus_error_free(error_); }
  Failure(Failure const&) = delete;
  Failure& operator=(Failure const&) = delete;

  [[nodiscard]] chorus_error_t* get() const { return error_; }

  // Throws unless the call that took get() has succeeded. `call` says which one that was, and on which rank.
  void check(chorus_status_t status, std::string const& call) const {
    if (status == CHORUS_OK) return;
    std::string text = call + ": " + chorus_status_name(status);
    if (std::string const why = chorus_error_text(error_); !why.empty()) text += ": " + why;
    text += ranks();
    if (status == CHORUS_DEADLINE_EXCEEDED) text += "; the timeout is that of the process group, or of the call";
    if (status == CHORUS_BAD_ARGUMENT) throw std::invalid_argument(text);
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 1)
    C10_THROW_ERROR(DistBackendError, text);
#else
    throw std::runtime_error(text);
#endif
  }

 private:
  // " (rank 1)" or " (ranks 1, 2)"; empty where no member is to blame.
  [[nodiscard]] std::string ranks() const {
    std::uint32_t const* ranks = nullptr;
    auto const count = chorus_error_ranks(error_, &ranks);
    std::string text;
    for (std::size_t i = 0; i < count; ++i) text += (i == 0 ? "" : ", ") + std::to_string(ranks[i]);
    return count == 0 ? text : (count == 1 ? " (rank " : " (ranks ") + text + ")";
  }

  chorus_error_t* error_;
};

}  // namespace chorus::process_group
