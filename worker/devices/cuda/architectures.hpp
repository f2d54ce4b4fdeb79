// The GPUs for which a build has code.
#pragma once

#include <charconv>
#include <string_view>

namespace chorus::devices {

// Returns true if a build for these architectures, such as "75,80,90", has code for GPUs of this compute capability:
// code of the same major version and no later minor one, or PTX, which is of the last architecture. Code of an
// architecture with a letter, such as "90a", is for that one only.
[[nodiscard]] inline bool has_code_for(std::string_view architectures, int major, int minor) {
  auto const capability = 10 * major + minor;
  for (bool is_last = false; !is_last;) {
    auto const part = architectures.substr(0, architectures.find(','));
    is_last = part.size() == architectures.size();
    architectures.remove_prefix(part.size() + (is_last ? 0 : 1));
    int built_for = 0;
    auto const* const end = std::from_chars(part.data(), part.data() + part.size(), built_for).ptr;
    bool const has_letter = end != part.data() + part.size();
    bool const runs_code = built_for / 10 == major && built_for <= capability;
    if (has_letter ? built_for == capability : runs_code || (is_last && built_for <= capability)) return true;
  }
  return false;
}

}  // namespace chorus::devices
