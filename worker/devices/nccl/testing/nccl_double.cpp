#include "worker/devices/nccl/testing/nccl_double.hpp"

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "worker/devices/cuda/testing/double_queue.hpp"
#include "worker/devices/nccl/nccl_abi.hpp"

using namespace chorus::devices;
using nccl::Communicator;
using nccl::DataType;
using nccl::RedOp;
using nccl::Return;
using testing::DoubleQueue;

namespace chorus::devices::nccl {

// The communicators of one call share a clique.
struct Clique {
  bool is_aborted = false;
  bool is_jammed = false;
};
struct ncclComm {
  std::shared_ptr<Clique> clique;
  int rank = 0, ranks = 0, device = 0;
};

}  // namespace chorus::devices::nccl

namespace {

using nccl::Clique;
using nccl::ncclComm;

constexpr Return remote_error = 6;

std::mutex mutex;
std::condition_variable goes_on;
int calls = 0, until_failure = -1, open_communicators = 0, collectives = 0, stuck = 0, depth = 0;
bool holds = false, jams = false, says_so = false;

// Counts the call. Returns true if it must fail. Called with the lock held.
bool fails() {
  ++calls;
  return until_failure >= 0 && until_failure-- == 0;
}

// One rank's part of a collective.
struct Share {
  std::byte const* send = nullptr;
  std::byte* receive = nullptr;
  DoubleQueue* queue = nullptr;
};

struct Collective {
  std::optional<RedOp> op;  // empty for a broadcast
  DataType type = DataType::u8;
  std::size_t count = 0;
  int root = 0;
  std::shared_ptr<Clique> clique;
  std::vector<Share> shares;
  std::size_t arrived = 0;
  bool is_jammed = false, is_done = false;
};

// The collectives of the open group, by clique.
std::map<Clique*, std::shared_ptr<Collective>> group;

std::size_t size_of(DataType type) {
  switch (type) {
    case DataType::i8:
    case DataType::u8:
      return 1;
    case DataType::f16:
    case DataType::bf16:
      return 2;
    case DataType::i32:
    case DataType::u32:
    case DataType::f32:
      return 4;
    case DataType::i64:
    case DataType::u64:
    case DataType::f64:
      return 8;
  }
  return 1;
}

// The type in which sums are computed: integers wrap.
template <class T>
struct Wide {
  using Type = std::make_unsigned_t<T>;
};
template <>
struct Wide<float> {
  using Type = float;
};
template <>
struct Wide<double> {
  using Type = double;
};

template <class T>
T combined(RedOp op, T one, T other) {
  auto const a = static_cast<typename Wide<T>::Type>(one), b = static_cast<typename Wide<T>::Type>(other);
  switch (op) {
    case RedOp::sum:
      return static_cast<T>(a + b);
    case RedOp::prod:
      return static_cast<T>(a * b);
    case RedOp::max:
      return std::max(one, other);
    case RedOp::min:
      return std::min(one, other);
  }
  return one;
}

template <class T>
void reduce(Collective const& all, std::vector<std::byte const*> const& sources, std::byte* result) {
  for (std::size_t i = 0; i < all.count; ++i) {
    T sum{};
    for (auto rank = sources.size(); rank-- > 0;) {
      T value{};
      std::memcpy(&value, sources[rank] + i * sizeof(T), sizeof(T));
      sum = rank + 1 == sources.size() ? value : combined(*all.op, sum, value);
    }
    std::memcpy(result + i * sizeof(T), &sum, sizeof(T));
  }
}

void work(Collective& all) {
  auto const bytes = all.count * size_of(all.type);
  auto const& root = all.shares[static_cast<std::size_t>(all.root)];
  if (!all.op) {
    auto const* const from = root.queue->behind(root.send, bytes);
    for (auto const& share : all.shares) std::memmove(share.queue->behind(share.receive, bytes), from, bytes);
    return;
  }
  std::vector<std::byte const*> sources;
  for (auto const& share : all.shares) sources.push_back(share.queue->behind(share.send, bytes));
  auto* const result = root.queue->behind(root.receive, bytes);
  switch (all.type) {
    case DataType::i8:
      return reduce<std::int8_t>(all, sources, result);
    case DataType::u8:
      return reduce<std::uint8_t>(all, sources, result);
    case DataType::i32:
      return reduce<std::int32_t>(all, sources, result);
    case DataType::u32:
      return reduce<std::uint32_t>(all, sources, result);
    case DataType::i64:
      return reduce<std::int64_t>(all, sources, result);
    case DataType::u64:
      return reduce<std::uint64_t>(all, sources, result);
    case DataType::f32:
      return reduce<float>(all, sources, result);
    case DataType::f64:
      return reduce<double>(all, sources, result);
    case DataType::f16:
    case DataType::bf16:
      return;
  }
}

// Stays in one rank's queue until the collective has ended there.
class Kernel {
 public:
  explicit Kernel(std::shared_ptr<Collective> all) : all_(std::move(all)) {}
  ~Kernel() {
    std::scoped_lock lock(mutex);
    if (!has_ended_ && !all_->clique->is_aborted) ++stuck;
  }
  Kernel(Kernel const&) = delete;
  Kernel& operator=(Kernel const&) = delete;

  void arrive() {
    std::scoped_lock lock(mutex);
    ++all_->arrived;
  }
  [[nodiscard]] bool can_end() const {
    std::scoped_lock lock(mutex);
    return all_->clique->is_aborted || (all_->arrived == all_->shares.size() && !all_->is_jammed);
  }
  void end() {
    std::scoped_lock lock(mutex);
    has_ended_ = true;
    if (all_->clique->is_aborted || std::exchange(all_->is_done, true)) return;
    work(*all_);
    ++collectives;
  }

 private:
  std::shared_ptr<Collective> const all_;
  bool has_ended_ = false;
};

Return enqueue(Collective const& asked, Communicator communicator, Share share) {
  std::scoped_lock lock(mutex);
  if (fails()) return nccl::unhandled_cuda_error;
  if (communicator == nullptr || depth != 1 || share.queue == nullptr || asked.root >= communicator->ranks ||
      static_cast<int>(share.queue->device()) != communicator->device)
    return nccl::invalid_argument;
  auto& all = group[communicator->clique.get()];
  if (all == nullptr) {
    all = std::make_shared<Collective>(asked);
    all->clique = communicator->clique;
    all->shares.resize(static_cast<std::size_t>(communicator->ranks));
    all->is_jammed = jams;
    communicator->clique->is_jammed = jams;
  }
  bool const is_the_same =
      all->op == asked.op && all->type == asked.type && all->count == asked.count && all->root == asked.root;
  if (!is_the_same) return nccl::invalid_argument;
  all->shares[static_cast<std::size_t>(communicator->rank)] = share;
  return nccl::success;
}

Return end(Communicator communicator, bool aborts) {
  std::scoped_lock lock(mutex);
  if (aborts) communicator->clique->is_aborted = true;
  bool const has_failed = fails();
  --open_communicators;
  delete communicator;
  return has_failed ? nccl::unhandled_cuda_error : nccl::success;
}

}  // namespace

extern "C" {
void nccl_double_begin() {
  std::scoped_lock lock(mutex);
  calls = collectives = stuck = 0;
  until_failure = -1;
  holds = jams = says_so = false;
  goes_on.notify_all();
}
void nccl_double_fail(int count) {
  std::scoped_lock lock(mutex);
  calls = 0;
  until_failure = count;
}
int nccl_double_calls() {
  std::scoped_lock lock(mutex);
  return calls;
}
void nccl_double_jam(bool says) {
  std::scoped_lock lock(mutex);
  jams = true;
  says_so = says;
}
void nccl_double_hold(bool holds_now) {
  std::scoped_lock lock(mutex);
  holds = holds_now;
  goes_on.notify_all();
}
int nccl_double_open() {
  std::scoped_lock lock(mutex);
  return open_communicators;
}
int nccl_double_collectives() {
  std::scoped_lock lock(mutex);
  return collectives;
}
int nccl_double_stuck() {
  std::scoped_lock lock(mutex);
  return stuck;
}

Return ncclGetVersion(int* version) {
  *version = 22105;
  return nccl::success;
}
char const* ncclGetErrorString(Return status) {
  switch (status) {
    case nccl::unhandled_cuda_error:
      return "unhandled cuda error (run with NCCL_DEBUG=INFO for details)";
    case nccl::invalid_argument:
      return "invalid argument (run with NCCL_DEBUG=WARN for details)";
    case remote_error:
      return "remote process exited or there was a network error";
    default:
      return "no error";
  }
}
char const* ncclGetLastError(Communicator) { return ""; }

Return ncclCommInitAll(Communicator* communicators, int devices, int const* list) {
  std::unique_lock lock(mutex);
  goes_on.wait(lock, [] { return !holds; });
  if (fails()) return nccl::unhandled_cuda_error;
  auto const clique = std::make_shared<Clique>();
  for (int rank = 0; rank < devices; ++rank) communicators[rank] = new ncclComm{clique, rank, devices, list[rank]};
  open_communicators += devices;
  return nccl::success;
}
Return ncclCommDestroy(Communicator communicator) { return end(communicator, false); }
Return ncclCommAbort(Communicator communicator) { return end(communicator, true); }
Return ncclCommGetAsyncError(Communicator communicator, Return* error) {
  std::scoped_lock lock(mutex);
  *error = communicator->clique->is_jammed && says_so ? remote_error : nccl::success;
  return fails() ? nccl::unhandled_cuda_error : nccl::success;
}

Return ncclGroupStart() {
  std::scoped_lock lock(mutex);
  if (fails()) return nccl::unhandled_cuda_error;
  ++depth;
  return nccl::success;
}
// Queues nothing of a group if one of its calls has failed, or if a rank is missing.
Return ncclGroupEnd() {
  std::unique_lock lock(mutex);
  if (depth-- != 1) return nccl::invalid_argument;
  auto const queued = std::exchange(group, {});
  if (fails()) return nccl::unhandled_cuda_error;
  for (auto const& [clique, all] : queued)
    if (std::ranges::any_of(all->shares, [](auto const& share) { return share.queue == nullptr; }))
      return nccl::invalid_argument;
  lock.unlock();
  for (auto const& [clique, all] : queued)
    for (auto const& share : all->shares) {
      auto const kernel = std::make_shared<Kernel>(all);
      share.queue->push({}, [kernel] { kernel->arrive(); });
      share.queue->push([kernel] { return kernel->can_end(); }, [kernel] { kernel->end(); });
    }
  return nccl::success;
}

Return ncclReduce(void const* send, void* receive, std::size_t count, int type, int op, int root,
                  Communicator communicator, void* stream) {
  Collective asked;
  asked.op = static_cast<RedOp>(op);
  asked.type = static_cast<DataType>(type);
  asked.count = count;
  asked.root = root;
  return enqueue(
      asked, communicator,
      {static_cast<std::byte const*>(send), static_cast<std::byte*>(receive), static_cast<DoubleQueue*>(stream)});
}
Return ncclBroadcast(void const* send, void* receive, std::size_t count, int type, int root, Communicator communicator,
                     void* stream) {
  Collective asked;
  asked.type = static_cast<DataType>(type);
  asked.count = count;
  asked.root = root;
  return enqueue(
      asked, communicator,
      {static_cast<std::byte const*>(send), static_cast<std::byte*>(receive), static_cast<DoubleQueue*>(stream)});
}
}
