// Stands for NVIDIA's driver, with two GPUs in memory of the host.
//
// A GPU's memory cannot be read or written but by copies. A copy is done when its stream is synchronized, not when it
// is queued: code that does not wait finds what its memory held before. The functions named double_* are for tests.
#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace {

constexpr int invalid_value = 1, not_initialized = 3, no_context = 201, invalid_device = 101, illegal_address = 700;
constexpr std::size_t page = 4096;

struct Memory {
  std::size_t bytes;
  int device;
  bool is_of_a_pool;
  int of_the_cpu;  // what the CPU may do there: PROT_NONE unless it is managed
};

struct Counts {
  std::uint64_t fetched_bytes, stored_bytes, pinned_blocks, pinned_bytes, synchronized;
};

using Stream = std::pair<int, std::uintptr_t>;  // of a device
using Copies = std::deque<std::function<int()>>;

std::recursive_mutex mutex;
bool is_initialized = false;
char contexts[2];
std::map<std::uintptr_t, Memory> memories;
std::map<Stream, Copies> streams;
std::map<std::string, int> failures;  // of the next call of a function
std::map<void*, std::size_t> pinned;
Counts counts{};
thread_local std::vector<void*> current;

std::size_t pages(std::size_t bytes) { return (bytes + page - 1) / page * page; }

int failure_of(std::string const& function) {
  auto const found = failures.find(function);
  if (found == failures.end()) return is_initialized || function == "cuInit" ? 0 : not_initialized;
  auto const status = found->second;
  failures.erase(found);
  return status;
}

int device_of(void* context) { return static_cast<int>(static_cast<char*>(context) - contexts); }

std::pair<std::uintptr_t, Memory> const* memory_at(std::uintptr_t address, std::size_t bytes) {
  static thread_local std::pair<std::uintptr_t, Memory> found;
  auto after = memories.upper_bound(address);
  if (after == memories.begin()) return nullptr;
  found = *--after;
  return address + bytes <= found.first + found.second.bytes ? &found : nullptr;
}

// Lets `use` touch memory of a GPU.
int access(std::uintptr_t address, std::size_t bytes, std::function<void()> const& use) {
  auto const* memory = memory_at(address, bytes);
  if (memory == nullptr) return illegal_address;
  auto* const begin = reinterpret_cast<void*>(memory->first);  // NOLINT
  mprotect(begin, pages(memory->second.bytes), PROT_READ | PROT_WRITE);
  use();
  mprotect(begin, pages(memory->second.bytes), memory->second.of_the_cpu);
  return 0;
}

int run(Stream const& stream) {
  auto status = 0;
  while (!streams[stream].empty()) {
    auto const copy = streams[stream].front();
    streams[stream].pop_front();
    if (auto const ended = copy(); ended != 0) status = ended;
  }
  return status;
}

int queue_copy(std::uintptr_t address, std::size_t bytes, std::uintptr_t stream, std::function<void()> use) {
  if (current.empty()) return no_context;
  auto const device = device_of(current.back());
  if (auto const* memory = memory_at(address, bytes); memory != nullptr && memory->second.device != device)
    return invalid_value;
  streams[{device, stream}].push_back([=, use = std::move(use)] { return access(address, bytes, use); });
  return 0;
}

}  // namespace

extern "C" {

int cuInit(unsigned /*flags*/) {
  std::lock_guard const lock(mutex);
  auto const status = failure_of("cuInit");
  is_initialized = status == 0;
  return status;
}

int cuDeviceGet(int* device, int ordinal) {
  std::lock_guard const lock(mutex);
  if (ordinal < 0 || ordinal > 1) return invalid_device;
  *device = ordinal;
  return failure_of("cuDeviceGet");
}

int cuDevicePrimaryCtxRetain(void** context, int device) {
  std::lock_guard const lock(mutex);
  *context = contexts + device;
  return failure_of("cuDevicePrimaryCtxRetain");
}

int cuPointerGetAttribute(void** data, int attribute, std::uintptr_t address) {
  std::lock_guard const lock(mutex);
  auto const* memory = memory_at(address, 1);
  if (attribute != 1 || memory == nullptr) return invalid_value;
  *data = memory->second.is_of_a_pool ? nullptr : contexts + memory->second.device;
  return failure_of("cuPointerGetAttribute");
}

int cuCtxPushCurrent_v2(void* context) {
  std::lock_guard const lock(mutex);
  auto const status = failure_of("cuCtxPushCurrent");
  if (status == 0) current.push_back(context);
  return status;
}

int cuCtxPopCurrent_v2(void** context) {
  if (current.empty()) return no_context;
  *context = current.back();
  current.pop_back();
  return 0;
}

int cuMemHostAlloc(void** data, std::size_t bytes, unsigned flags) {
  std::lock_guard const lock(mutex);
  if (current.empty()) return no_context;
  if (flags != 1) return invalid_value;
  if (auto const status = failure_of("cuMemHostAlloc"); status != 0) return status;
  *data = std::aligned_alloc(page, pages(bytes));
  std::memset(*data, 0xEE, bytes);
  pinned[*data] = bytes;
  ++counts.pinned_blocks;
  counts.pinned_bytes += bytes;
  return 0;
}

int cuMemFreeHost(void* data) {
  std::lock_guard const lock(mutex);
  auto const found = pinned.find(data);
  if (current.empty() || found == pinned.end()) return invalid_value;
  counts.pinned_bytes -= found->second;
  pinned.erase(found);
  std::free(data);
  return 0;
}

int cuMemcpyDtoHAsync_v2(void* to, std::uintptr_t from, std::size_t bytes, std::uintptr_t stream) {
  std::lock_guard const lock(mutex);
  if (auto const status = failure_of("cuMemcpyDtoHAsync"); status != 0) return status;
  counts.fetched_bytes += bytes;
  return queue_copy(from, bytes, stream, [=] { std::memcpy(to, reinterpret_cast<void*>(from), bytes); });  // NOLINT
}

int cuMemcpyHtoDAsync_v2(std::uintptr_t to, void const* from, std::size_t bytes, std::uintptr_t stream) {
  std::lock_guard const lock(mutex);
  if (auto const status = failure_of("cuMemcpyHtoDAsync"); status != 0) return status;
  counts.stored_bytes += bytes;
  return queue_copy(to, bytes, stream, [=] { std::memcpy(reinterpret_cast<void*>(to), from, bytes); });  // NOLINT
}

int cuStreamSynchronize(std::uintptr_t stream) {
  std::lock_guard const lock(mutex);
  if (current.empty()) return no_context;
  ++counts.synchronized;
  auto const failed = failure_of("cuStreamSynchronize");
  auto const status = run({device_of(current.back()), stream});
  return failed != 0 ? failed : status;
}

int cuGetErrorName(int status, char const** text) {
  if (status == 9999) return invalid_value;
  *text = status == illegal_address ? "CUDA_ERROR_ILLEGAL_ADDRESS"
          : status == 100           ? "CUDA_ERROR_NO_DEVICE"
          : status == 101           ? "CUDA_ERROR_INVALID_DEVICE"
                                    : "CUDA_ERROR_OF_THE_DOUBLE";
  return 0;
}

int cuGetErrorString(int status, char const** text) {
  if (status == 9999) return invalid_value;
  *text = status == illegal_address ? "an illegal memory access was encountered" : "told by a test";
  return 0;
}

// Memory of a GPU; that of a pool belongs to no context, and the CPU reads and writes managed memory as well.
std::uintptr_t double_allocate(int device, std::size_t bytes, int is_of_a_pool, int is_managed) {
  std::lock_guard const lock(mutex);
  auto const of_the_cpu = is_managed != 0 ? PROT_READ | PROT_WRITE : PROT_NONE;
  auto* const data = mmap(nullptr, pages(bytes), of_the_cpu, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  auto const address = reinterpret_cast<std::uintptr_t>(data);  // NOLINT
  memories[address] = {bytes, device, is_of_a_pool != 0, of_the_cpu};
  return address;
}

void double_free(std::uintptr_t address) {
  std::lock_guard const lock(mutex);
  munmap(reinterpret_cast<void*>(address), pages(memories[address].bytes));  // NOLINT
  memories.erase(address);
}

// What the memory holds at this moment, whatever is queued; and how that is set.
int double_peek(void* to, std::uintptr_t from, std::size_t bytes) {
  std::lock_guard const lock(mutex);
  return access(from, bytes, [=] { std::memcpy(to, reinterpret_cast<void*>(from), bytes); });  // NOLINT
}

int double_poke(std::uintptr_t to, void const* from, std::size_t bytes) {
  std::lock_guard const lock(mutex);
  return access(to, bytes, [=] { std::memcpy(reinterpret_cast<void*>(to), from, bytes); });  // NOLINT
}

// Queues a kernel of a library of arrays, which writes these bytes.
void double_queue(int device, std::uintptr_t stream, std::uintptr_t to, void const* from, std::size_t bytes) {
  std::lock_guard const lock(mutex);
  auto const* const begin = static_cast<char const*>(from);
  streams[{device, stream}].push_back([=, copy = std::vector<char>(begin, begin + bytes)] {
    double_poke(to, copy.data(), copy.size());  // nothing if the memory was freed since
    return 0;
  });
}

// Lets a stream wait for what another one has to do by now.
void double_wait(int device, std::uintptr_t stream, std::uintptr_t for_stream) {
  std::lock_guard const lock(mutex);
  streams[{device, stream}].push_back([=] { return run({device, for_stream}); });
}

int double_current() { return current.empty() ? -1 : device_of(current.back()); }
void double_fail(char const* function, int status) {
  std::lock_guard const lock(mutex);
  failures[function] = status;
}
Counts double_counts() {
  std::lock_guard const lock(mutex);
  return counts;
}

}  // extern "C"
