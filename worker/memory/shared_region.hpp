// Memory of one process that others on the same host map: a sparse file in /dev/shm.
//
// Whoever knows the ticket finds the file by its name and knows by the nonce in it that it is the one that is meant,
// and not a namesake in another container. The owner holds a lock on the file as long as it lives, so the others can
// tell when it has died, whatever process namespaces are between them.
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
#include "worker/memory/bus_guard.hpp"

namespace chorus::memory {

// What a process tells others so that they can find its region. Travels as it lies in memory.
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

// Capacities are multiples of this, and regions begin at one, so that huge pages fit.
inline constexpr std::uint64_t region_unit_bytes = 2u << 20;
// What is first in a region, and in the names of their files.
inline constexpr std::uint64_t region_magic = 0x316e6f6967657263;  // "cregion1"
inline constexpr std::string_view region_file_prefix = "chorus-";
// What the region itself uses at its beginning.
inline constexpr std::uint64_t region_head_bytes = 4096;

// The first bytes of a region. `bell` and `sleepers` are for any use of those who share it: they stay as long as the
// region, so that a late ring never hits memory that means something else by now.
struct RegionHead {
  std::uint64_t magic = 0;  // written last
  std::uint64_t layout = 0;
  std::array<std::uint64_t, 2> nonce{};
  std::uint64_t capacity_bytes = 0;
  alignas(64) std::atomic<std::uint32_t> sleepers{0};
  std::uint32_t far_fences = 0;  // 1: the owner takes part in far fences, and makes one before it sleeps
  alignas(64) std::atomic<std::uint32_t> bell{0};
};
static_assert(sizeof(RegionHead) == 192 && std::atomic<std::uint32_t>::is_always_lock_free);
static_assert(sizeof(RegionHead) <= region_head_bytes);

// A mapping, of one's own region or of another process's. Immovable; threads may share it.
class Mapping {
 public:
  // Takes over the descriptor. The guard is over the bytes.
  Mapping(int descriptor, std::span<std::byte> bytes, BusGuard guard);
  ~Mapping();
  Mapping(Mapping const&) = delete;
  Mapping& operator=(Mapping const&) = delete;

  [[nodiscard]] std::span<std::byte> bytes() const { return bytes_; }
  [[nodiscard]] RegionHead& head() const { return *reinterpret_cast<RegionHead*>(bytes_.data()); }
  // Empty if it does not lie within the region. Never overflows.
  [[nodiscard]] std::span<std::byte> at(std::uint64_t offset, std::uint64_t size) const;
  [[nodiscard]] int descriptor() const { return descriptor_; }
  // It was truncated: what was read from it may be zeros that nobody wrote.
  [[nodiscard]] bool is_broken() const { return guard_->is_broken(); }
  // Nor is it truncated where nobody has read yet. A system call.
  [[nodiscard]] bool is_whole() const { return guard_->is_whole(descriptor_, bytes_.size()); }
  [[nodiscard]] BusGuard const& guard() const { return *guard_; }

 private:
  int const descriptor_;
  std::span<std::byte> const bytes_;
  std::optional<BusGuard> guard_;
};

// One's own region. The file disappears with the object, or, should the process be killed, when the next one of the
// host calls remove_abandoned().
class SharedRegion {
 public:
  // Takes address space, not memory: pages come with back(). The capacity is rounded up. Errors:
  // MemoryErrc::unavailable.
  [[nodiscard]] static Result<std::unique_ptr<SharedRegion>> create(Ticket ticket);
  ~SharedRegion();
  SharedRegion(SharedRegion const&) = delete;
  SharedRegion& operator=(SharedRegion const&) = delete;

  [[nodiscard]] Ticket const& ticket() const { return ticket_; }
  [[nodiscard]] Mapping const& mapping() const { return mapping_; }

  // Gives these bytes memory; huge pages where they fit and can be had. Without it, running out of memory would be a
  // signal. Errors: MemoryErrc::unavailable.
  [[nodiscard]] Status back(std::uint64_t offset, std::uint64_t size);
  // Takes the memory of the whole pages within these bytes back; they read as zeros until backed again. False: the
  // system did not take it, and they are as they were.
  bool release(std::uint64_t offset, std::uint64_t size);
  // From now on these bytes are this process's alone: others that still write them do not reach it. The contents stay.
  // In whole pages; what the first and the last page share with them goes along. Errors: MemoryErrc::unavailable.
  [[nodiscard]] Status withdraw(std::uint64_t offset, std::uint64_t size);
  // The end of that, in the whole pages within these bytes: what others see there is seen here again, and the memory
  // that was this process's alone goes. False: the memory has gone, and the bytes still are this process's alone.
  [[nodiscard]] bool readmit(std::uint64_t offset, std::uint64_t size);

 private:
  SharedRegion(Ticket ticket, int descriptor, std::span<std::byte> bytes, BusGuard guard);
  Ticket const ticket_;
  Mapping const mapping_;
};

// Another process's region.
class PeerRegion {
 public:
  // Errors: not_shared, damaged, unavailable; the detail names the file.
  [[nodiscard]] static Result<std::shared_ptr<PeerRegion const>> open(Ticket const& ticket);
  PeerRegion(Ticket const& ticket, int descriptor, std::span<std::byte> bytes, BusGuard guard);
  PeerRegion(PeerRegion const&) = delete;
  PeerRegion& operator=(PeerRegion const&) = delete;

  [[nodiscard]] Ticket const& ticket() const { return ticket_; }
  [[nodiscard]] Mapping const& mapping() const { return mapping_; }
  // Whether its owner still runs (a stopped process does). A few system calls.
  [[nodiscard]] bool owner_lives() const;

 private:
  Ticket const ticket_;
  Mapping const mapping_;
};

// Removes the files of regions whose owners have died. Gives their number.
std::size_t remove_abandoned();

}  // namespace chorus::memory
