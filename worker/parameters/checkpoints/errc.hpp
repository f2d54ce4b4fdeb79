// Errors of the files of checkpoints.
#pragma once

#include <system_error>

namespace chorus::checkpoints {

enum class SafetensorsErrc {
  truncated = 1,     // shorter than the prefix, the header or the tensors
  header_too_large,  // beyond what the format allows
  bad_start,         // the header does not begin with {
  bad_header,        // not JSON, or not of the form of the format
  bad_name,          // not UTF-8, empty, or reserved
  duplicate_name,    // a key twice
  bad_dtype,         // unknown, or not supported here
  bad_offsets,       // end before begin
  size_mismatch,     // end - begin is not shape x dtype
  size_overflow,     // shape x dtype does not fit into 64 bits
  overlap,           // a byte belongs to two tensors
  hole,              // a byte belongs to no tensor
};

enum class CheckpointErrc {
  not_found = 1,  // no checkpoint in the directory
  damaged,        // a file is missing or incomplete, or differs from its digest
  bad_manifest,   // the manifest cannot be read, or contradicts itself or its files
  bad_content,    // the content to write contradicts itself
  exists,         // a checkpoint of this number has been committed
  out_of_range,   // the parameter does not have these elements or this array
};

[[nodiscard]] std::error_category const& safetensors_category();
[[nodiscard]] std::error_category const& checkpoint_category();
[[nodiscard]] inline std::error_code make_error_code(SafetensorsErrc e) {
  return {static_cast<int>(e), safetensors_category()};
}
[[nodiscard]] inline std::error_code make_error_code(CheckpointErrc e) {
  return {static_cast<int>(e), checkpoint_category()};
}

}  // namespace chorus::checkpoints

template <>
struct std::is_error_code_enum<chorus::checkpoints::SafetensorsErrc> : std::true_type {};
template <>
struct std::is_error_code_enum<chorus::checkpoints::CheckpointErrc> : std::true_type {};
