// Memory of one process that other processes on the host map: a sparse file in /dev/shm.
//
// The ticket contains the file's name and a nonce. The nonce in the file shows that it is the right one, and not a file
// of the same name in another container. The owner holds a lock on the file while it lives, so that peers detect its
// death even across process namespaces.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "collectives/core/result.hpp"
#include "worker/memory/pages/bus_guard.hpp"

namespace chorus::memory {

// Identifies a region to other processes. Sent as its bytes in memory.
struct Ticket {
  std::uint64_t id = 0;  // the file is /dev/shm/chorus-<id in hex>; 0: no region
  std::array<std::uint64_t, 2> nonce{};
  std::uint64_t capacity_bytes = 0;

  friend bool operator==(Ticket const&, Ticket const&) = default;
};
static_assert(sizeof(Ticket) == 32 && std::has_unique_object_representations_v<Ticket>);

// Random id and nonce, from the system's source of randomness.
[[nodiscard]] Ticket random_ticket(std::uint64_t capacity_bytes);
[[nodiscard]] std::string file_name(Ticket const& ticket);  // "chorus-0123456789abcdef"

// Size of a huge page: capacities and addresses of regions are multiples of it.
inline constexpr std::uint64_t region_unit_bytes = 2u << 20;
// First bytes of a region, and prefix of its file name.
inline constexpr std::uint64_t region_magic = 0x316e6f6967657263;  // "cregion1"
inline constexpr std::string_view region_file_prefix = "chorus-";
inline constexpr std::string_view region_directory = "/dev/shm";
// Bytes at the beginning of a region that are reserved for its head.
inline constexpr std::uint64_t region_head_bytes = 4096;

// The first bytes of a region. `bell` and `sleepers` are a futex and its waiters for the processes that share the
// region. They live as long as the region, so that a late wake-up never changes memory with another meaning.
struct RegionHead {
  std::uint64_t magic = 0;  // written last
  std::uint64_t layout = 0;
  std::array<std::uint64_t, 2> nonce{};
  std::uint64_t capacity_bytes = 0;
  std::atomic<std::uint32_t> lacks{0};  // changes when a process of the host lacks memory: see tell_of_lack()
  std::atomic<std::uint32_t> pulse{0};  // the owner adds 1 about once a second; 0: it has no pulse
  alignas(64) std::atomic<std::uint32_t> sleepers{0};
  std::uint32_t membarrier_fences = 0;  // 1: the owner takes part in membarrier fences, and makes one before it sleeps
  alignas(64) std::atomic<std::uint32_t> bell{0};
};
static_assert(offsetof(RegionHead, lacks) == 40 && offsetof(RegionHead, pulse) == 44);
static_assert(sizeof(RegionHead) == 192 && std::atomic<std::uint32_t>::is_always_lock_free);
static_assert(sizeof(RegionHead) <= region_head_bytes);

// A mapping of this process's region or of another one's. Immovable; threads may share it.
class Mapping {
 public:
  // Takes ownership of descriptor and mapped bytes. The guard covers the bytes.
  Mapping(int descriptor, std::span<std::byte> bytes, BusGuard guard);
  ~Mapping();
  Mapping(Mapping const&) = delete;
  Mapping& operator=(Mapping const&) = delete;

  [[nodiscard]] std::span<std::byte> bytes() const { return bytes_; }
  [[nodiscard]] RegionHead& head() const { return *reinterpret_cast<RegionHead*>(bytes_.data()); }
  // Returns the bytes at this offset; empty if they are not within the region. Never overflows.
  [[nodiscard]] std::span<std::byte> at(std::uint64_t offset, std::uint64_t size) const;
  [[nodiscard]] int descriptor() const { return descriptor_; }
  // True if reading has met a truncation: bytes that were read may be zeros that no process wrote.
  [[nodiscard]] bool is_broken() const { return guard_->is_broken(); }
  // True if the region is not broken, and not truncated where nothing has been read yet. A system call.
  [[nodiscard]] bool is_whole() const { return guard_->is_whole(descriptor_, bytes_.size()); }
  [[nodiscard]] BusGuard const& guard() const { return *guard_; }

 private:
  int const descriptor_;
  std::span<std::byte> const bytes_;
  std::optional<BusGuard> guard_;
};

// This process's region. The destructor removes the file. If the process is killed, the next remove_abandoned() of any
// process of the host does.
class SharedRegion {
 public:
  // Reserves address space only: back() adds memory. The capacity is rounded up. Errors: MemoryErrc::unavailable.
  [[nodiscard]] static Result<std::unique_ptr<SharedRegion>> create(Ticket ticket);
  ~SharedRegion();
  SharedRegion(SharedRegion const&) = delete;
  SharedRegion& operator=(SharedRegion const&) = delete;

  [[nodiscard]] Ticket const& ticket() const { return ticket_; }
  [[nodiscard]] Mapping const& mapping() const { return mapping_; }

  // Gives memory to these bytes and touches it, in huge pages where possible. Without this call a lack of memory would
  // raise a signal at the first access. Bytes that have memory keep their contents. Errors: MemoryErrc::unavailable.
  [[nodiscard]] Status back(std::uint64_t offset, std::uint64_t size);
  // Returns how much shared memory the system has left at this moment; the greatest number if there is no limit.
  [[nodiscard]] std::uint64_t available_bytes() const;
  // Returns the memory of the whole pages within these bytes to the system; they read as zeros until backed again.
  // False if the system refused, and the bytes are unchanged.
  bool release(std::uint64_t offset, std::uint64_t size);
  // Makes the pages that contain these bytes private to this process: writes of other processes no longer reach it. The
  // contents stay. Errors: MemoryErrc::unavailable.
  [[nodiscard]] Status withdraw(std::uint64_t offset, std::uint64_t size);
  // Ends withdraw() for the whole pages within these bytes: they show the shared file again, and the private memory is
  // freed. False if mapping failed: the private memory is freed, and the bytes stay private.
  [[nodiscard]] bool readmit(std::uint64_t offset, std::uint64_t size);

 private:
  SharedRegion(Ticket ticket, int descriptor, std::span<std::byte> bytes, BusGuard guard);
  [[nodiscard]] Status give_pages(std::uint64_t from, std::uint64_t to);
  Ticket const ticket_;
  Mapping const mapping_;
};

// Another process's region.
class PeerRegion {
 public:
  // Maps the region of a ticket. Errors: not_shared, damaged, unavailable; the detail names the file.
  [[nodiscard]] static Result<std::shared_ptr<PeerRegion const>> open(Ticket const& ticket);
  PeerRegion(Ticket const& ticket, int descriptor, std::span<std::byte> bytes, BusGuard guard);
  PeerRegion(PeerRegion const&) = delete;
  PeerRegion& operator=(PeerRegion const&) = delete;

  [[nodiscard]] Ticket const& ticket() const { return ticket_; }
  [[nodiscard]] Mapping const& mapping() const { return mapping_; }
  // Returns true if the owner's process exists; a stopped process does. A few system calls.
  [[nodiscard]] bool owner_lives() const;

 private:
  Ticket const ticket_;
  Mapping const mapping_;
};

// Removes the files of regions whose owners have died. Returns their number.
std::size_t remove_abandoned();

}  // namespace chorus::memory
