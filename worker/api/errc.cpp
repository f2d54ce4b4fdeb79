#include "worker/api/errc.hpp"

#include <string>

namespace chorus {
namespace {

class Category final : public std::error_category {
 public:
  [[nodiscard]] char const* name() const noexcept override { return "worker"; }
  [[nodiscard]] std::string message(int code) const override {
    switch (static_cast<WorkerErrc>(code)) {
      case WorkerErrc::bad_argument:
        return "bad argument";
      case WorkerErrc::no_coordinator:
        return "no coordinator";
      case WorkerErrc::fenced:
        return "fenced";
      case WorkerErrc::not_assigned:
        return "not assigned to the group";
      case WorkerErrc::no_new_epoch:
        return "the group has no new epoch";
      case WorkerErrc::stopped:
        return "the worker has stopped";
      case WorkerErrc::cancelled:
        return "cancelled";
      case WorkerErrc::not_cancellable:
        return "cannot be cancelled";
    }
    return "unknown error";
  }
};

}  // namespace

std::error_category const& worker_category() {
  static Category const category;
  return category;
}

}  // namespace chorus
