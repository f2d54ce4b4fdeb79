#include "worker/parameters/checkpoints/errc.hpp"

#include <string>

namespace chorus::checkpoints {
namespace {

class SafetensorsCategory final : public std::error_category {
 public:
  char const* name() const noexcept override { return "safetensors"; }
  std::string message(int value) const override {
    switch (static_cast<SafetensorsErrc>(value)) {
      case SafetensorsErrc::truncated:
        return "the file is too short";
      case SafetensorsErrc::header_too_large:
        return "the header is too large";
      case SafetensorsErrc::bad_start:
        return "the header does not begin with {";
      case SafetensorsErrc::bad_header:
        return "the header is not of the format";
      case SafetensorsErrc::bad_name:
        return "bad name";
      case SafetensorsErrc::duplicate_name:
        return "a name occurs twice";
      case SafetensorsErrc::bad_dtype:
        return "bad dtype";
      case SafetensorsErrc::bad_offsets:
        return "bad offsets";
      case SafetensorsErrc::size_mismatch:
        return "the size does not fit the shape";
      case SafetensorsErrc::size_overflow:
        return "too large";
      case SafetensorsErrc::overlap:
        return "tensors overlap";
      case SafetensorsErrc::hole:
        return "bytes belong to no tensor";
    }
    return "unknown safetensors error";
  }
};

class CheckpointCategory final : public std::error_category {
 public:
  char const* name() const noexcept override { return "checkpoints"; }
  std::string message(int value) const override {
    switch (static_cast<CheckpointErrc>(value)) {
      case CheckpointErrc::not_found:
        return "no checkpoint";
      case CheckpointErrc::damaged:
        return "the checkpoint is damaged";
      case CheckpointErrc::bad_manifest:
        return "bad manifest";
      case CheckpointErrc::bad_content:
        return "bad content";
      case CheckpointErrc::exists:
        return "the checkpoint exists";
      case CheckpointErrc::out_of_range:
        return "out of range";
    }
    return "unknown checkpoint error";
  }
};

}  // namespace

std::error_category const& safetensors_category() {
  static SafetensorsCategory const category;
  return category;
}

std::error_category const& checkpoint_category() {
  static CheckpointCategory const category;
  return category;
}

}  // namespace chorus::checkpoints
