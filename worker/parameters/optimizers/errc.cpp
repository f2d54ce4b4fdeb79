#include "worker/parameters/optimizers/errc.hpp"

#include <string>

namespace chorus::parameters {
namespace {

class OptimizerCategory final : public std::error_category {
 public:
  char const* name() const noexcept override { return "optimizers"; }
  std::string message(int value) const override {
    switch (static_cast<OptimizerErrc>(value)) {
      case OptimizerErrc::unsupported_dtype:
        return "not for this dtype";
      case OptimizerErrc::out_of_memory:
        return "out of memory";
    }
    return "unknown optimizer error";
  }
};

}  // namespace

std::error_category const& optimizer_category() {
  static OptimizerCategory const category;
  return category;
}

}  // namespace chorus::parameters
