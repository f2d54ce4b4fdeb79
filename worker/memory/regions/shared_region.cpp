#include "worker/memory/regions/shared_region.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <new>
#include <random>
#include <thread>
#include <utility>

#include "worker/memory/pages/errc.hpp"
#include "worker/memory/pages/membarrier_fence.hpp"
#include "worker/memory/pages/page.hpp"
#include "worker/memory/pages/private_copy.hpp"
#include "worker/memory/pages/touch.hpp"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25  // since Linux 6.1; older kernels refuse it, which does no harm
#endif

namespace chorus::memory {
namespace {

constexpr std::uint64_t region_layout = 1;
constexpr std::time_t unfinished_seconds = 60;
// Tries for a lock that no process holds for longer than a few system calls.
constexpr int lock_tries = 1000;
constexpr std::chrono::milliseconds lock_every{1};

std::string shm_name(Ticket const& ticket) { return '/' + file_name(ticket); }

Error system_error(MemoryErrc code, std::string const& what, int error) {
  return {code, what + ": " + std::generic_category().message(error)};
}

// remove_abandoned() of another process locks each file for a moment, also that of a region being created.
bool lock(int descriptor) {
  for (int i = 0; i < lock_tries; ++i) {
    if (flock(descriptor, LOCK_EX | LOCK_NB) == 0) return true;
    if (errno != EWOULDBLOCK && errno != EINTR) return false;
    std::this_thread::sleep_for(lock_every);
  }
  errno = EWOULDBLOCK;
  return false;
}

struct Mapped {
  std::span<std::byte> bytes;
  BusGuard guard;
};

// Maps `size` bytes of the file at the boundary of a huge page.
Result<Mapped> map(int descriptor, std::uint64_t size, std::string const& name) {
  auto const failed = [&] { return system_error(MemoryErrc::unavailable, "map " + name, errno); };
  auto const room = size + region_unit_bytes;
  auto* const reserved = mmap(nullptr, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED) return failed();
  auto const begin = reinterpret_cast<std::uintptr_t>(reserved);
  auto const from = (begin + region_unit_bytes - 1) / region_unit_bytes * region_unit_bytes;
  auto* const at = reinterpret_cast<void*>(from);
  if (mmap(at, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, descriptor, 0) == MAP_FAILED) {
    auto error = failed();
    munmap(reserved, room);
    return error;
  }
  if (from != begin) munmap(reserved, from - begin);
  if (auto const rest = begin + room - (from + size); rest != 0) munmap(reinterpret_cast<void*>(from + size), rest);
  std::span const bytes(static_cast<std::byte*>(at), size);
  auto guard = BusGuard::over(bytes);
  if (guard.has_error()) {
    munmap(at, size);
    return Error(guard.error().code, "map " + name + ": " + guard.error().detail);
  }
  return Mapped{bytes, std::move(*guard)};
}

// Errors that may have gone at the next try.
bool is_lack(int error) { return error == EMFILE || error == ENFILE || error == ENOMEM; }

}  // namespace

Ticket random_ticket(std::uint64_t capacity_bytes) {
  std::random_device source;
  auto const draw = [&] { return (std::uint64_t{source()} << 32) | source(); };
  Ticket ticket;
  while (ticket.id == 0) ticket.id = draw();
  ticket.nonce = {draw(), draw()};
  ticket.capacity_bytes = (capacity_bytes + region_unit_bytes - 1) / region_unit_bytes * region_unit_bytes;
  return ticket;
}

std::string file_name(Ticket const& ticket) {
  std::string digits(16, '0');
  for (std::size_t i = 0; i < digits.size(); ++i) digits[i] = "0123456789abcdef"[ticket.id >> (60 - 4 * i) & 15];
  return std::string(region_file_prefix) + digits;
}

Mapping::Mapping(int descriptor, std::span<std::byte> bytes, BusGuard guard)
    : descriptor_(descriptor), bytes_(bytes), guard_(std::move(guard)) {}

Mapping::~Mapping() {
  guard_.reset();  // before another mapping gets these addresses
  munmap(bytes_.data(), bytes_.size());
  close(descriptor_);
}

std::span<std::byte> Mapping::at(std::uint64_t offset, std::uint64_t size) const {
  if (offset > bytes_.size() || size > bytes_.size() - offset) return {};
  return bytes_.subspan(offset, size);
}

SharedRegion::SharedRegion(Ticket ticket, int descriptor, std::span<std::byte> bytes, BusGuard guard)
    : ticket_(ticket), mapping_(descriptor, bytes, std::move(guard)) {}

SharedRegion::~SharedRegion() { shm_unlink(shm_name(ticket_).c_str()); }

Result<std::unique_ptr<SharedRegion>> SharedRegion::create(Ticket ticket) {
  auto const name = shm_name(ticket);
  auto const failed = [&](char const* what) {
    return system_error(MemoryErrc::unavailable, std::string(what) + ' ' + name, errno);
  };
  auto const descriptor = shm_open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (descriptor < 0) return failed("create");
  auto const give_up = [&](Error why) {
    shm_unlink(name.c_str());
    close(descriptor);
    return why;
  };
  if (!lock(descriptor)) return give_up(failed("lock"));
  if (ftruncate(descriptor, static_cast<off_t>(ticket.capacity_bytes)) != 0) {
    bool const is_limit = errno == EFBIG;
    auto why = failed("size");
    if (is_limit) why.detail += "; files of this process may not be so large (ulimit -f, LimitFSIZE of systemd)";
    return give_up(std::move(why));
  }
  auto mapped = map(descriptor, ticket.capacity_bytes, name);
  if (mapped.has_error()) return give_up(mapped.error());
  auto const bytes = mapped->bytes;
  std::unique_ptr<SharedRegion> region(new SharedRegion(ticket, descriptor, bytes, std::move(mapped->guard)));
  if (auto backed = region->back(0, region_head_bytes); backed.has_error()) return backed.error();
  auto& head = *new (bytes.data()) RegionHead;
  head.layout = region_layout;
  head.nonce = ticket.nonce;
  head.capacity_bytes = ticket.capacity_bytes;
  head.membarrier_fences = take_part_in_membarrier_fences() ? 1 : 0;
  std::atomic_ref(head.magic).store(region_magic, std::memory_order_release);
  return region;
}

Status SharedRegion::give_pages(std::uint64_t from, std::uint64_t to) {
  // FALLOC_FL_KEEP_SIZE: a truncated file must not look whole again.
  while (fallocate(mapping_.descriptor(), FALLOC_FL_KEEP_SIZE, static_cast<off_t>(from),
                   static_cast<off_t>(to - from)) != 0)
    if (errno != EINTR)
      return system_error(MemoryErrc::unavailable, std::to_string(to - from) + " bytes of shared memory", errno);
  return ok();
}

Status SharedRegion::back(std::uint64_t offset, std::uint64_t size) {
  auto const from = offset / page_bytes * page_bytes;
  auto const to = (offset + size + page_bytes - 1) / page_bytes * page_bytes;
  auto const huge_from = (from + region_unit_bytes - 1) / region_unit_bytes * region_unit_bytes;
  auto const huge_to = to / region_unit_bytes * region_unit_bytes;
  auto* const bytes = mapping_.bytes().data();
  // One page is allocated in each unit, and MADV_COLLAPSE makes it a huge page: faster than allocating all its pages
  // first. This is advice only: without huge pages the memory is slower.
  for (auto unit = huge_from; unit < huge_to; unit += region_unit_bytes)
    if (auto given = give_pages(unit, unit + page_bytes); given.has_error()) return given;
  if (huge_from < huge_to) madvise(bytes + huge_from, huge_to - huge_from, MADV_COLLAPSE);
  if (auto given = give_pages(from, to); given.has_error()) return given;
  touch_pages({bytes + from, to - from});
  return ok();
}

std::uint64_t SharedRegion::available_bytes() const {
  struct statvfs shm {};
  if (fstatvfs(mapping_.descriptor(), &shm) != 0 || shm.f_blocks == 0) return ~std::uint64_t{0};
  return std::uint64_t{shm.f_bavail} * shm.f_frsize;
}

bool SharedRegion::release(std::uint64_t offset, std::uint64_t size) {
  auto const from = (offset + page_bytes - 1) / page_bytes * page_bytes;
  auto const to = (offset + size) / page_bytes * page_bytes;
  return from >= to || fallocate(mapping_.descriptor(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                                 static_cast<off_t>(from), static_cast<off_t>(to - from)) == 0;
}

Status SharedRegion::withdraw(std::uint64_t offset, std::uint64_t size) {
  if (size == 0) return ok();
  return put_private_copy(mapping_.bytes().subspan(offset, size));
}

bool SharedRegion::readmit(std::uint64_t offset, std::uint64_t size) {
  auto const from = (offset + page_bytes - 1) / page_bytes * page_bytes;
  auto const to = (offset + size) / page_bytes * page_bytes;
  if (from >= to) return true;
  auto* const at = mapping_.bytes().data() + from;
  if (mmap(at, to - from, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, mapping_.descriptor(),
           static_cast<off_t>(from)) != MAP_FAILED)
    return true;
  madvise(at, to - from, MADV_DONTNEED);
  return false;
}

PeerRegion::PeerRegion(Ticket const& ticket, int descriptor, std::span<std::byte> bytes, BusGuard guard)
    : ticket_(ticket), mapping_(descriptor, bytes, std::move(guard)) {}

Result<std::shared_ptr<PeerRegion const>> PeerRegion::open(Ticket const& ticket) {
  auto const name = shm_name(ticket);
  if (ticket.id == 0) return Error(MemoryErrc::not_shared, "it has no shared memory");
  auto const descriptor = shm_open(name.c_str(), O_RDWR | O_CLOEXEC, 0);
  if (descriptor < 0)
    return system_error(is_lack(errno) ? MemoryErrc::unavailable : MemoryErrc::not_shared,
                        std::string(region_directory) + name, errno);
  auto const give_up = [&](MemoryErrc code, std::string const& why) {
    close(descriptor);
    return Error(code, std::string(region_directory) + name + ": " + why);
  };
  struct stat found {};
  if (fstat(descriptor, &found) != 0) return give_up(MemoryErrc::damaged, std::generic_category().message(errno));
  bool const sound = ticket.capacity_bytes >= region_unit_bytes && ticket.capacity_bytes % region_unit_bytes == 0;
  if (!sound || static_cast<std::uint64_t>(found.st_size) != ticket.capacity_bytes)
    return give_up(MemoryErrc::damaged,
                   std::to_string(found.st_size) + " bytes instead of " + std::to_string(ticket.capacity_bytes));
  auto mapped = map(descriptor, ticket.capacity_bytes, name);
  if (mapped.has_error()) return give_up(MemoryErrc::unavailable, mapped.error().detail);
  auto region = std::make_shared<PeerRegion const>(ticket, descriptor, mapped->bytes, std::move(mapped->guard));
  auto& head = region->mapping().head();
  bool const is_it = std::atomic_ref(head.magic).load(std::memory_order_acquire) == region_magic &&
                     head.layout == region_layout && head.nonce == ticket.nonce &&
                     head.capacity_bytes == ticket.capacity_bytes && !region->mapping().is_broken();
  if (!is_it)
    return Error(MemoryErrc::not_shared, std::string(region_directory) + name + " is not the one that is meant");
  return region;
}

bool PeerRegion::owner_lives() const {
  // flock() locks belong to the open file description, so that this process's own descriptor can test the owner's lock.
  if (flock(mapping_.descriptor(), LOCK_SH | LOCK_NB) != 0) return true;
  flock(mapping_.descriptor(), LOCK_UN);
  return false;
}

std::size_t remove_abandoned() {
  std::size_t removed = 0;
  auto* const listing = opendir(std::string(region_directory).c_str());
  if (listing == nullptr) return 0;
  while (auto const* const entry = readdir(listing)) {
    std::string const name = entry->d_name;
    if (!name.starts_with(region_file_prefix)) continue;
    auto const descriptor = shm_open(('/' + name).c_str(), O_RDWR | O_CLOEXEC, 0);
    if (descriptor < 0) continue;
    struct stat found {};
    bool const is_free = flock(descriptor, LOCK_EX | LOCK_NB) == 0 && fstat(descriptor, &found) == 0;
    // A region looks abandoned between its creation and its lock.
    bool const is_new = found.st_blocks == 0 && std::time(nullptr) - found.st_mtime < unfinished_seconds;
    if (is_free && !is_new && shm_unlink(('/' + name).c_str()) == 0) ++removed;
    close(descriptor);
  }
  closedir(listing);
  return removed;
}

}  // namespace chorus::memory
