// Which file a path leads to, so that one that was removed or replaced under its user is noticed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace chorus::coordinator {

struct FileIdentity {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  friend bool operator==(FileIdentity const&, FileIdentity const&) = default;
};

// Nothing: there is no file that could be looked at.
[[nodiscard]] std::optional<FileIdentity> identity_of(std::string const& path);

}  // namespace chorus::coordinator
