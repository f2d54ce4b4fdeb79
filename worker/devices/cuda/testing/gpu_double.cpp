#include "worker/devices/cuda/testing/gpu_double.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string>

#include "worker/devices/cuda/testing/double_session.hpp"

namespace chorus::devices::testing {
namespace {

constexpr std::uint64_t page = 4096;
constexpr int poison = 0xa5;

// The content of a double's IpcHandle.
struct Shared {
  std::uint64_t magic = 0;
  std::int64_t process = 0;
  std::int64_t file = -1;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::uint64_t uses_at = 0;  // in the file
};
constexpr std::uint64_t shared_magic = 0x656c62756f642121;
static_assert(sizeof(Shared) <= sizeof(IpcHandle));

// A page after the memory with numbers of allocations, by page of their offset. Other processes read it to see if the
// memory of a handle was freed.
constexpr std::uint64_t uses_bytes = page;
std::uint64_t place_of(std::uint64_t offset) { return offset / page % (uses_bytes / sizeof(std::uint64_t)); }

std::uint64_t rounded(std::uint64_t bytes) { return (bytes + page - 1) / page * page; }

}  // namespace

GpuDouble::GpuDouble(std::uint32_t index, std::uint64_t memory_bytes, std::uint64_t seed) : seed_(seed) {
  info_.index = index;
  info_.name = "double";
  info_.uuid = "GPU-00000000-0000-0000-0000-00000000000" + std::to_string(index);
  info_.pci_address = "0000:00:0" + std::to_string(index) + ".0";
  info_.memory_bytes = rounded(memory_bytes);
  info_.multiprocessors = 1;
  file_ = memfd_create("gpu-double", MFD_CLOEXEC);
  if (file_ < 0 || ftruncate(file_, static_cast<off_t>(info_.memory_bytes + uses_bytes)) != 0)
    throw std::runtime_error("no memory for a double");
  own_ = map(file_, 0, info_.memory_bytes);
  uses_ = map(file_, info_.memory_bytes, uses_bytes);
}

GpuDouble::~GpuDouble() {
  unmap(own_);
  unmap(uses_);
  ::close(file_);
}

GpuDouble::Window GpuDouble::map(int file, std::uint64_t offset, std::uint64_t bytes) const {
  auto* const real = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, static_cast<off_t>(offset));
  auto* const shown = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (real == MAP_FAILED || shown == MAP_FAILED) throw std::runtime_error("a double cannot be mapped");
  return {static_cast<std::byte*>(shown), static_cast<std::byte*>(real), bytes};
}

std::uint64_t& GpuDouble::uses(Window const& places, std::uint64_t offset) {
  return reinterpret_cast<std::uint64_t*>(places.real)[place_of(offset)];
}

void GpuDouble::unmap(Window const& window) {
  munmap(window.shown, window.bytes);
  munmap(window.real, window.bytes);
}

void GpuDouble::fail_after(std::int64_t count, GpuErrc how) {
  std::scoped_lock lock(mutex_);
  until_failure_ = count;
  failure_ = how;
}

Status GpuDouble::work() {
  std::scoped_lock lock(mutex_);
  auto const name = "cuda:" + std::to_string(info_.index);
  if (lost_when_ != nullptr && *lost_when_) lost_ = true;
  if (lost_) return Error(GpuErrc::lost, name + ": the double was lost");
  if (until_failure_ < 0 || until_failure_-- > 0) return ok();
  if (failure_ == GpuErrc::lost) lost_ = true;
  return Error(failure_, name + ": the double was told to fail");
}

std::byte* GpuDouble::real(std::byte const* shown, std::uint64_t bytes) const {
  auto const within = [&](Window const& window) {
    return shown >= window.shown && shown + bytes <= window.shown + window.bytes;
  };
  if (within(own_)) return own_.real + (shown - own_.shown);
  std::scoped_lock lock(mutex_);
  for (auto const& [at, window] : opened_)
    if (within(window)) return window.real + (shown - window.shown);
  for (auto const* const other : seen_)
    if (within(other->own_)) return other->own_.real + (shown - other->own_.shown);
  return const_cast<std::byte*>(shown);
}

std::span<std::byte> GpuDouble::behind(std::span<std::byte const> memory) const {
  return {real(memory.data(), memory.size()), memory.size()};
}

Result<std::shared_lock<std::shared_timed_mutex>> GpuDouble::unheld() {
  std::shared_lock lock(still_, patience_with_still_);
  if (!lock) return Error(GpuErrc::failed, "cuda:" + std::to_string(info_.index) + ": the double is held still");
  return lock;
}

bool GpuDouble::is_lost() const {
  std::scoped_lock lock(mutex_);
  return lost_;
}

Result<std::uint64_t> GpuDouble::free_bytes() {
  auto const moves = unheld();
  if (!moves) return moves.error();
  std::scoped_lock lock(mutex_);
  auto free = info_.memory_bytes;
  for (auto const& [offset, size] : used_) free -= size;
  return free;
}

Result<std::byte*> GpuDouble::allocate(std::uint64_t bytes) {
  auto const moves = unheld();
  if (!moves) return moves.error();
  std::scoped_lock lock(mutex_);
  if (lost_) return Error(GpuErrc::lost, "the double was lost");
  auto const size = rounded(std::max<std::uint64_t>(bytes, 1));
  std::uint64_t at = 0;
  for (auto const& [offset, used] : used_) {
    if (offset - at >= size) break;
    at = offset + used;
  }
  if (size > info_.memory_bytes - at)
    return Error(GpuErrc::out_of_memory, "cuda:" + std::to_string(info_.index) + ": no room for " +
                                             std::to_string(bytes) + " bytes in the double");
  used_.emplace(at, size);
  ++uses(uses_, at);
  ++allocations_;
  std::memset(own_.real + at, poison, size);
  return own_.shown + at;
}

void GpuDouble::free(std::byte* memory) {
  std::scoped_lock lock(mutex_);
  auto const used = used_.find(static_cast<std::uint64_t>(memory - own_.shown));
  if (used == used_.end()) throw std::logic_error("freed what was not allocated");
  std::memset(own_.real + used->first, poison, used->second);
  --uses(uses_, used->first);
  used_.erase(used);
}

Result<std::byte*> GpuDouble::allocate_pinned(std::uint64_t bytes) {
  auto const moves = unheld();
  if (!moves) return moves.error();
  auto* const memory = new std::byte[bytes];
  std::memset(memory, poison, bytes);
  return memory;
}

void GpuDouble::free_pinned(std::byte* memory) { delete[] memory; }

Result<std::unique_ptr<GpuSession>> GpuDouble::session() {
  auto const moves = unheld();
  if (!moves) return moves.error();
  if (auto const works = work(); !works) return works.error();
  return std::unique_ptr<GpuSession>(std::make_unique<DoubleSession>(*this, seed_));
}

Result<IpcHandle> GpuDouble::share(std::byte* memory) {
  auto const moves = unheld();
  if (!moves) return moves.error();
  if (!shares_) return Error(GpuErrc::failed, "cuda:" + std::to_string(info_.index) + ": the double shares nothing");
  std::scoped_lock lock(mutex_);
  auto const used = used_.find(static_cast<std::uint64_t>(memory - own_.shown));
  if (used == used_.end()) return Error(GpuErrc::failed, "shares what was not allocated");
  Shared const shared{shared_magic, getpid(), file_, used->first, used->second, info_.memory_bytes};
  IpcHandle handle{};
  std::memcpy(handle.data(), &shared, sizeof shared);
  return handle;
}

Result<std::byte*> GpuDouble::open(IpcHandle const& handle, std::uint64_t bytes) {
  auto const moves = unheld();
  if (!moves) return moves.error();
  Shared shared;
  std::memcpy(&shared, handle.data(), sizeof shared);
  auto const refuse = [&](std::string const& why) {
    return Error(GpuErrc::bad_handle, "cuda:" + std::to_string(info_.index) + ": " + why);
  };
  if (!why_not_open_.empty()) return Error(how_not_open_, refuse(why_not_open_).detail);
  if (shared.magic != shared_magic) return refuse("the handle is of no memory");
  if (bytes > shared.bytes)
    return refuse("the memory of the handle has " + std::to_string(shared.bytes) + " bytes, " + std::to_string(bytes) +
                  " were said to be there");
  auto const path = "/proc/" + std::to_string(shared.process) + "/fd/" + std::to_string(shared.file);
  auto const file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return refuse("its owner has gone");
  auto const theirs = map(file, shared.uses_at, uses_bytes);
  bool const is_there = uses(theirs, shared.offset) != 0;
  unmap(theirs);
  auto const window = is_there ? map(file, shared.offset, shared.bytes) : Window();
  ::close(file);
  if (!is_there) return refuse("the memory of the handle was freed");
  std::scoped_lock lock(mutex_);
  opened_.emplace(window.shown, window);
  return window.shown;
}

std::size_t GpuDouble::opened() const {
  std::scoped_lock lock(mutex_);
  return opened_.size();
}

Status GpuDouble::reach(std::string_view uuid) {
  auto const moves = unheld();
  if (!moves) return moves.error();
  if (uuid == info_.uuid || std::find(neighbours_.begin(), neighbours_.end(), uuid) != neighbours_.end()) return ok();
  return Error(GpuErrc::unavailable,
               "cuda:" + std::to_string(info_.index) + ": the double has no peer access to " + std::string(uuid));
}

Status GpuDouble::see(Gpu& other) {
  auto const reaches = reach(other.info().uuid);
  if (!reaches || &other == this) return reaches;
  std::scoped_lock lock(mutex_);
  seen_.push_back(&dynamic_cast<GpuDouble const&>(other));
  return ok();
}

void GpuDouble::close(std::byte* opened) {
  std::scoped_lock lock(mutex_);
  auto const found = opened_.find(opened);
  if (found == opened_.end()) throw std::logic_error("closed what was not opened");
  unmap(found->second);
  opened_.erase(found);
}

}  // namespace chorus::devices::testing
