// Memory of a client program on this host that the worker may use: a part of a POSIX shared memory object.
//
// The client is not trusted: the object is opened only if it is a plain file whose permissions let the worker read and
// write it, offsets are checked against the file's size, and a file that is truncated later is an error.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "collectives/core/result.hpp"
#include "worker/memory/pages/bus_guard.hpp"
#include "worker/memory/regions/region.hpp"

namespace chorus::memory {

// Returns true for a key such as "/psm_1234": a slash and a file name in /dev/shm, 2 to 255 visible ASCII characters,
// and not a region of a Chorus process.
[[nodiscard]] bool is_client_key(std::string_view key);

struct FileRights {
  uid_t owner = 0;
  gid_t group = 0;
  mode_t mode = 0;
};
// Returns true if the permission bits let the user read and write the file. Root is treated like any other user, so
// that a worker that runs as root does not open every user's memory to its clients.
[[nodiscard]] bool may_use(FileRights const& file, uid_t user, std::span<gid_t const> groups);

// Immovable; threads may share it.
class ClientRegion final : public Region {
 public:
  // Errors: MemoryErrc bad_key, not_shared (there is none, or it may not be used), out_of_range, unavailable.
  [[nodiscard]] static Result<std::shared_ptr<ClientRegion const>> open(std::string name, std::string key,
                                                                        std::uint64_t offset, std::uint64_t size_bytes);
  ~ClientRegion() override;

  [[nodiscard]] std::string const& name() const override { return name_; }
  [[nodiscard]] std::string const& key() const { return key_; }
  [[nodiscard]] std::uint64_t offset() const { return offset_; }  // in the object
  [[nodiscard]] std::span<std::byte> bytes() const override { return bytes_; }
  [[nodiscard]] std::optional<std::string> damage() const override;

  // Returns true if the object still contains the whole region, and did at every use so far. A system call.
  [[nodiscard]] bool is_whole() const;
  // Returns true if `other` is the same part of the same object. The same key may name another object later.
  [[nodiscard]] bool is_same(ClientRegion const& other) const;

 private:
  struct File {
    int descriptor = -1;
    dev_t device = 0;
    ino_t inode = 0;
  };
  ClientRegion(std::string name, std::string key, File file, std::uint64_t offset, std::span<std::byte> mapped,
               std::span<std::byte> bytes, BusGuard guard);
  std::string const name_;
  std::string const key_;
  File const file_;
  std::uint64_t const offset_;
  std::span<std::byte> const mapped_;  // whole pages
  std::span<std::byte> const bytes_;
  std::optional<BusGuard> guard_;
};

}  // namespace chorus::memory
