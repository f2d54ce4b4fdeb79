#include "worker/memory/regions/shared_room.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cstddef>
#include <memory>
#include <string>

#include "worker/memory/regions/shared_region.hpp"

namespace chorus::memory {
namespace {

// Uses pread() and pwrite(), no mapping and no lock. A file that is not a complete region stays unchanged.
void tell(int descriptor) {
  std::uint64_t magic = 0;
  std::uint32_t lacks = 0;
  static_assert(sizeof(RegionHead::lacks) == sizeof lacks);
  constexpr auto place = offsetof(RegionHead, lacks);
  bool const is_region = pread(descriptor, &magic, sizeof magic, offsetof(RegionHead, magic)) == sizeof magic &&
                         magic == region_magic && pread(descriptor, &lacks, sizeof lacks, place) == sizeof lacks;
  if (!is_region) return;
  ++lacks;
  // If this fails, the owner returns its memory a little later.
  static_cast<void>(pwrite(descriptor, &lacks, sizeof lacks, place) == sizeof lacks);
}

}  // namespace

std::optional<SharedRoom> shared_room() {
  struct statvfs found {};
  if (statvfs(std::string(region_directory).c_str(), &found) != 0 || found.f_blocks == 0) return std::nullopt;
  return SharedRoom{std::uint64_t{found.f_blocks} * found.f_frsize, std::uint64_t{found.f_bavail} * found.f_frsize};
}

void tell_of_lack() {
  std::unique_ptr<DIR, int (*)(DIR*)> const listing(opendir(std::string(region_directory).c_str()), &closedir);
  if (listing == nullptr) return;
  while (auto const* const entry = readdir(listing.get())) {
    std::string const name = entry->d_name;
    if (!name.starts_with(region_file_prefix)) continue;
    auto const descriptor = shm_open(('/' + name).c_str(), O_RDWR | O_CLOEXEC, 0);
    if (descriptor < 0) continue;
    tell(descriptor);
    close(descriptor);
  }
}

}  // namespace chorus::memory
