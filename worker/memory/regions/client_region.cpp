#include "worker/memory/regions/client_region.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "worker/memory/pages/errc.hpp"
#include "worker/memory/pages/page.hpp"
#include "worker/memory/pages/touch.hpp"
#include "worker/memory/regions/shared_region.hpp"

namespace chorus::memory {
namespace {

constexpr char const* client_directory = "/dev/shm";
constexpr std::size_t key_max = 255;

// Owns a descriptor until release().
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }
  Descriptor(Descriptor const&) = delete;
  Descriptor& operator=(Descriptor const&) = delete;
  [[nodiscard]] int get() const { return number_; }
  int release() { return std::exchange(number_, -1); }

 private:
  int number_;
};

std::string system_message() { return std::generic_category().message(errno); }

std::vector<gid_t> own_groups() {
  auto const count = getgroups(0, nullptr);
  std::vector<gid_t> groups(count > 0 ? static_cast<std::size_t>(count) : 0);
  if (!groups.empty() && getgroups(count, groups.data()) < 0) groups.clear();
  groups.push_back(getegid());
  return groups;
}

// Returns the reason why this file may not be mapped; empty if it may.
std::string objection_to(int descriptor, struct stat const& file) {
  if (!S_ISREG(file.st_mode)) return "it is no shared memory object";
  // A hard link could give any file this name, also a worker's arena.
  if (file.st_nlink != 1) return "it has several names";
  auto const groups = own_groups();
  if (!may_use({file.st_uid, file.st_gid, file.st_mode}, geteuid(), groups))
    return "its permissions do not let this worker read and write it";
  std::uint64_t magic = 0;
  if (pread(descriptor, &magic, sizeof magic, 0) == sizeof magic && magic == region_magic)
    return "it belongs to a Chorus process";
  return "";
}

}  // namespace

bool is_client_key(std::string_view key) {
  if (key.size() < 2 || key.size() > key_max || key.front() != '/') return false;
  auto const file = key.substr(1);
  if (file == "." || file == ".." || file.starts_with(region_file_prefix)) return false;
  return std::all_of(file.begin(), file.end(), [](char c) { return c > ' ' && c <= '~' && c != '/'; });
}

bool may_use(FileRights const& file, uid_t user, std::span<gid_t const> groups) {
  auto const allows = [&](unsigned shift) { return (file.mode >> shift & 06u) == 06u; };
  if (file.owner == user) return allows(6);
  if (std::find(groups.begin(), groups.end(), file.group) != groups.end()) return allows(3);
  return allows(0);
}

Result<std::shared_ptr<ClientRegion const>> ClientRegion::open(std::string name, std::string key, std::uint64_t offset,
                                                               std::uint64_t size_bytes) {
  if (!is_client_key(key))
    return Error(MemoryErrc::bad_key,
                 "expected a slash and the name of an object in /dev/shm without another one, not of a Chorus process");
  Descriptor const place(::open(client_directory, O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (place.get() < 0) return Error(MemoryErrc::unavailable, client_directory + (": " + system_message()));
  // O_NONBLOCK: a pipe of that name must not block. O_NOFOLLOW: a symbolic link must not lead elsewhere.
  Descriptor file(openat(place.get(), key.c_str() + 1, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  auto const refused = [&](std::string const& why) {
    return Error(MemoryErrc::not_shared, client_directory + key + ": " + why);
  };
  if (file.get() < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM))
    return Error(MemoryErrc::unavailable, client_directory + key + ": " + system_message());
  if (file.get() < 0) return refused(system_message());
  struct stat found {};
  if (fstat(file.get(), &found) != 0) return refused(system_message());
  if (auto const why = objection_to(file.get(), found); !why.empty()) return refused(why);

  auto const available = static_cast<std::uint64_t>(found.st_size);
  if (size_bytes == 0 || offset > available || size_bytes > available - offset)
    return Error(MemoryErrc::out_of_range, std::to_string(size_bytes) + " bytes from " + std::to_string(offset) +
                                               " on are asked for, " + client_directory + key + " has " +
                                               std::to_string(available));
  auto const from = offset / page_bytes * page_bytes;
  auto const length = (offset + size_bytes - from + page_bytes - 1) / page_bytes * page_bytes;
  auto* const at =
      mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file.get(), static_cast<off_t>(from));
  if (at == MAP_FAILED) return Error(MemoryErrc::unavailable, client_directory + key + ": " + system_message());
  std::span const mapped(static_cast<std::byte*>(at), length);
  auto guard = BusGuard::over(mapped);
  if (guard.has_error()) {
    munmap(at, length);
    return Error(guard.error().code, client_directory + key + ": " + guard.error().detail);
  }
  File const kept{file.release(), found.st_dev, found.st_ino};
  return std::shared_ptr<ClientRegion const>(new ClientRegion(std::move(name), std::move(key), kept, offset, mapped,
                                                              mapped.subspan(offset - from, size_bytes),
                                                              std::move(*guard)));
}

ClientRegion::ClientRegion(std::string name, std::string key, File file, std::uint64_t offset,
                           std::span<std::byte> mapped, std::span<std::byte> bytes, BusGuard guard)
    : name_(std::move(name)),
      key_(std::move(key)),
      file_(file),
      offset_(offset),
      mapped_(mapped),
      bytes_(bytes),
      guard_(std::move(guard)) {}

ClientRegion::~ClientRegion() {
  forget_pages(mapped_);
  guard_.reset();  // before another mapping gets these addresses
  munmap(mapped_.data(), mapped_.size());
  close(file_.descriptor);
}

bool ClientRegion::is_whole() const { return guard_->is_whole(file_.descriptor, offset_ + bytes_.size()); }

std::optional<std::string> ClientRegion::damage() const {
  if (is_whole()) return std::nullopt;
  return key_ + " no longer reaches to its end, or /dev/shm was full";
}

bool ClientRegion::is_same(ClientRegion const& other) const {
  return file_.device == other.file_.device && file_.inode == other.file_.inode && offset_ == other.offset_ &&
         bytes_.size() == other.bytes_.size();
}

}  // namespace chorus::memory
