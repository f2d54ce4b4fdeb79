// Identity of the file behind a path, by which a user of the file notices that it was removed or replaced.
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

// Returns nothing if the path leads to no file that can be examined.
[[nodiscard]] std::optional<FileIdentity> identity_of(std::string const& path);

}  // namespace chorus::coordinator
