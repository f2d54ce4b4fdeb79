#include "worker/parameters/compression/errc.hpp"

#include <string>

namespace chorus::parameters {
namespace {

class CompressionCategory final : public std::error_category {
 public:
  char const* name() const noexcept override { return "compression"; }
  std::string message(int value) const override {
    switch (static_cast<CompressionErrc>(value)) {
      case CompressionErrc::bad_settings:
        return "bad settings";
      case CompressionErrc::nonfinite:
        return "not finite";
      case CompressionErrc::length_mismatch:
        return "the length does not fit";
      case CompressionErrc::bad_header:
        return "bad header";
      case CompressionErrc::bad_index:
        return "bad index";
      case CompressionErrc::bad_code:
        return "bad code";
      case CompressionErrc::bad_scale:
        return "bad scale";
    }
    return "unknown compression error";
  }
};

}  // namespace

std::error_category const& compression_category() {
  static CompressionCategory const category;
  return category;
}

}  // namespace chorus::parameters
