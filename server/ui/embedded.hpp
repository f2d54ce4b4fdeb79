// The files of the status page as they lie in server/ui/page, in this binary: made by cmake/ChorusEmbed.cmake.
#pragma once

#include <span>
#include <string_view>

namespace chorus::ui {

struct EmbeddedFile {
  std::string_view name;
  std::span<unsigned char const> bytes;
  std::string_view sha256;  // hex
};

[[nodiscard]] std::span<EmbeddedFile const> embedded_files();

}  // namespace chorus::ui
