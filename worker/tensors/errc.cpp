#include "worker/tensors/errc.hpp"

#include <string>

namespace chorus::tensors {
namespace {

class TensorCategory final : public std::error_category {
 public:
  char const* name() const noexcept override { return "tensors"; }
  std::string message(int value) const override {
    switch (static_cast<TensorErrc>(value)) {
      case TensorErrc::unknown:
        return "no such tensor";
      case TensorErrc::busy:
        return "the tensor is in use";
      case TensorErrc::version_changed:
        return "the tensor is at another version";
      case TensorErrc::bad_shape:
        return "bad shape";
      case TensorErrc::bad_name:
        return "bad name";
      case TensorErrc::out_of_memory:
        return "out of memory";
    }
    return "unknown tensor error";
  }
};

}  // namespace

std::error_category const& tensor_category() {
  static TensorCategory const category;
  return category;
}

}  // namespace chorus::tensors
