#include "worker/memory/registered_memory.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <string>
#include <utility>

#include "collectives/core/assert.hpp"
#include "worker/memory/pages/errc.hpp"
#include "worker/memory/pages/page.hpp"
#include "worker/memory/pages/private_copy.hpp"

namespace chorus::memory {
namespace {

// A line of /proc/self/maps: "55d0-55d8 rw-p 00000000 00:00 0   [heap]".
struct MapLine {
  std::uintptr_t begin = 0, end = 0;
  std::string_view permissions, inode, path;
};

MapLine read(std::string_view line) {
  MapLine found;
  auto const field = [&line] {
    auto const from = std::min(line.find_first_not_of(' '), line.size());
    auto const text = line.substr(from, line.find(' ', from) - from);
    line.remove_prefix(from + text.size());
    return text;
  };
  auto const range = field();
  auto const dash = range.find('-');
  std::from_chars(range.data(), range.data() + dash, found.begin, 16);
  std::from_chars(range.data() + dash + 1, range.data() + range.size(), found.end, 16);
  found.permissions = field();
  static_cast<void>(field());  // the offset
  static_cast<void>(field());  // the device
  found.inode = field();
  found.path = field();
  return found;
}

// Returns the reason why these pages cannot be replaced; empty if they can.
std::string why_not(std::span<std::byte> bytes) {
  auto const begin = reinterpret_cast<std::uintptr_t>(bytes.data()), end = begin + bytes.size();
  if (bytes.empty() || begin % page_bytes != 0 || bytes.size() % page_bytes != 0)
    return "not whole pages of " + std::to_string(page_bytes) + " bytes";
  std::ifstream maps("/proc/self/maps");
  auto seen = begin;  // end of the checked memory
  for (std::string line; seen < end && std::getline(maps, line);) {
    auto const map = read(line);
    if (map.end <= seen) continue;
    if (map.begin > seen) break;
    if (map.path == "[stack]") return "it is the stack";
    if (map.permissions != "rw-p")
      return "it is not private memory that can be written: " + std::string(map.permissions);
    if (map.inode != "0") return "it is a mapping of " + std::string(map.path);
    seen = map.end;
  }
  return seen < end ? "there is no memory at some of these addresses" : "";
}

}  // namespace

RegisteredMemory::RegisteredMemory(std::shared_ptr<Arena> arena, std::span<std::byte> bytes, std::span<std::byte> block,
                                   BusGuard guard)
    : arena_(std::move(arena)), bytes_(bytes), block_(block), guard_(std::move(guard)) {
  arena_->show_at(bytes_, block_.data());
}

Result<std::unique_ptr<RegisteredMemory>> RegisteredMemory::make(std::shared_ptr<Arena> arena,
                                                                 std::span<std::byte> bytes) {
  if (auto why = why_not(bytes); !why.empty())
    return Error(MemoryErrc::out_of_range, "memory to register: " + std::move(why));
  auto guard = BusGuard::over(bytes, &arena->mapping().guard());
  if (guard.has_error()) return guard.error();
  auto const block = arena->allocate(bytes.size());
  if (block.has_error()) return block.error();
  std::memcpy(block->data(), bytes.data(), bytes.size());
  auto const& mapping = arena->mapping();
  auto const offset = block->data() - mapping.bytes().data();
  if (mmap(bytes.data(), bytes.size(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, mapping.descriptor(), offset) ==
      MAP_FAILED) {
    auto const why = errno;
    arena->free(block->data());
    return Error(MemoryErrc::unavailable, "map registered memory: " + std::string(std::strerror(why)));
  }
  madvise(bytes.data(), bytes.size(), MADV_HUGEPAGE);
  return std::unique_ptr<RegisteredMemory>(new RegisteredMemory(std::move(arena), bytes, *block, std::move(*guard)));
}

RegisteredMemory::~RegisteredMemory() {
  arena_->show_no_longer(bytes_.data());
  // If the copy fails, the program goes on using the arena's pages: the block must not be freed.
  if (put_private_copy(bytes_).has_value()) arena_->free(block_.data());
}

}  // namespace chorus::memory
