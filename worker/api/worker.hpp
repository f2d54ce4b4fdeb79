// Chorus in a C++ program: the one header to include. See docs/reference/cpp_api.md.
//
//   chorus::WorkerOptions options;
//   options.coordinator = "http://127.0.0.1:7070";
//   auto worker = chorus::Worker::start(options);
//   auto group = worker->join("training", std::chrono::steady_clock::now() + std::chrono::seconds(60));
//   std::vector<float> gradient = ...;
//   chorus::Status status = group->all_reduce(gradient);
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/core/locality.hpp"
#include "collectives/core/result.hpp"
#include "http/server/security_options.hpp"
#include "worker/api/element.hpp"
#include "worker/api/errc.hpp"
#include "worker/api/joined_group.hpp"
#include "worker/api/tensor.hpp"

namespace chorus {

namespace embedded {
class Core;
}  // namespace embedded
namespace memory {
class RegisteredMemory;
}  // namespace memory

// As the flags of chorus-worker.
struct WorkerOptions {
  std::string coordinator;         // URL, or several with commas; "" for a worker that stands alone, and joins no group
  std::string host = "127.0.0.1";  // to bind
  std::uint16_t port = 0;          // 0 picks one
  std::string advertise;           // HOST[:PORT] that others use; "": `host`, or the host's name if that is a wildcard
  std::string id;                  // "" for "<host name>-<port>"
  Locality locality;               // an empty host becomes the host's name
  std::uint64_t tensor_limit_bytes = std::uint64_t{16} << 30;  // of one that comes over HTTP
  std::uint64_t memory_limit_bytes = 0;  // of all tensors and results; 0: three quarters of the machine's memory
  bool shares_memory = true;             // with other workers of the host
  std::string link_checksum = "auto";    // auto, on, off: CRC32C of what goes to other workers over connections
  std::chrono::microseconds spin{20};    // how long the idle data thread polls before it blocks
  std::chrono::milliseconds drain_timeout{5000};  // how long the destructor waits for what others run on this worker
  std::size_t connections = 16384;                // accepted at once
  // Who may call this worker, what it shows to the others, TLS: docs/guides/security.md.
  http::SecurityOptions security;
  std::string log_level = "warn";  // trace, debug, info, warn, error, off: to standard error
};

// The members of a group that a program makes: `workers` or `size`.
struct GroupOptions {
  std::vector<std::string> workers;  // ids, each once, the id of this worker among them
  std::uint32_t size = 0;            // so many of the ready workers, those that stand closest together
  // "listed": rank r is the r-th of `workers`; "locality", "measured": docs/guides/groups.md. "": listed if there are
  // `workers`, otherwise locality.
  std::string order;
};

// A whole worker in this process: its HTTP service, its lease at the coordinator, its data plane, on two threads of its
// own. A process may have several. All functions from any thread.
class Worker {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  // Binds, and begins to join the coordinator; does not wait for it. SIGPIPE is ignored from then on, and the limit of
  // open descriptors raised. Errors: WorkerErrc::bad_argument, HttpErrc::bind_failed.
  [[nodiscard]] static Result<Worker> start(WorkerOptions options);

  // Calls that are under way on groups of this worker end with EngineErrc::aborted, and so do later ones; then the
  // worker leaves the coordinator, and its threads end; the data thread only with the last JoinedGroup of the worker.
  // No other function of the worker is under way.
  ~Worker();
  Worker(Worker&&) noexcept;
  Worker& operator=(Worker&&) noexcept;

  [[nodiscard]] std::string const& id() const;
  [[nodiscard]] std::string const& url() const;

  // Waits until the coordinator has assigned this worker to a group of that name (PUT /v1/groups/{name}), in an epoch
  // in which no call of this worker has failed and no member is lost. The same epoch, joined again, is the same member,
  // in the same order of calls. Errors: WorkerErrc, all of them; the detail says what was missing at the deadline.
  [[nodiscard]] Result<JoinedGroup> join(std::string const& group, TimePoint deadline);

  // Makes a group at the coordinator, and joins it. With `workers` every member calls it, with the same options: the
  // first one listed asks the coordinator, once all have joined that, and the others wait for the group. With `size`
  // one worker calls it, and the others join(). A group of this name in which a call has failed gets its next epoch.
  // Errors: WorkerErrc. bad_argument: members or an order that cannot be, or this worker is a member of that group
  // already. not_assigned: a member is unknown or does not answer until the deadline, the first one listed has not
  // called, or this worker is not one of the `size`. EngineErrc::forbidden: the worker's token does not suffice.
  [[nodiscard]] Result<JoinedGroup> create_group(std::string const& name, GroupOptions const& options,
                                                 TimePoint deadline);

  // Deletes a group at the coordinator; one member calls it, after all have met in a barrier. Returns when the others
  // have been told: their calls end with EngineErrc::epoch_fenced, and every worker frees what it holds of the group
  // once its JoinedGroups are gone. A group that is not there is no error. Errors: WorkerErrc bad_argument,
  // no_coordinator, stopped, fenced; EngineErrc::forbidden.
  [[nodiscard]] Status delete_group(std::string const& name, TimePoint deadline);

  // Elements, not initialized, where the other workers of the host see them; where that cannot be, in memory of the
  // process's own, which works as well and is copied once on its way. Errors: TensorErrc::out_of_memory.
  template <Element T>
  [[nodiscard]] Result<Tensor<T>> allocate(std::size_t elements) {
    if (elements > SIZE_MAX / sizeof(T))
      return Error(WorkerErrc::bad_argument, "more elements than there are addresses");
    auto block = allocate_bytes(elements * sizeof(T));
    if (block.has_error()) return block.error();
    return Tensor<T>(std::move(block->owner), {reinterpret_cast<T*>(block->bytes.data()), elements});
  }

  // The same without a type.
  struct Memory {
    std::shared_ptr<void> owner;  // the bytes are valid as long as it lives
    std::span<std::byte> bytes;   // aligned to 64 bytes
  };
  [[nodiscard]] Result<Memory> allocate_bytes(std::size_t bytes);

  // Memory that the program has already, as if it had been allocated here: its addresses and contents stay, and the
  // other workers of the host see it, so that calls need no copy. Whole pages of 4096 bytes, private and writable, as
  // of std::aligned_alloc or an anonymous mmap; from 2 MiB on best aligned to as much. Nobody reads or writes it while
  // this function works, or while the registration ends, and no call that uses it is under way then; in between it is
  // ordinary memory, but that a child of fork() shares it, and it is neither unmapped nor given back (madvise). Not
  // registered, any memory works, and is copied once on its way. Errors: MemoryErrc::not_shared: this worker shares no
  // memory; out_of_range: other memory than that; unavailable: none is left.
  class Registration {
   public:
    Registration(Registration&&) noexcept;
    Registration& operator=(Registration&&) noexcept;
    ~Registration();  // ends it; the contents stay. It may outlive the worker.

   private:
    friend class Worker;
    explicit Registration(std::unique_ptr<memory::RegisteredMemory> memory);
    std::unique_ptr<memory::RegisteredMemory> memory_;
  };
  [[nodiscard]] Result<Registration> register_bytes(std::span<std::byte> bytes);
  template <Element T>
  [[nodiscard]] Result<Registration> register_memory(std::span<T> elements) {
    return register_bytes(std::as_writable_bytes(elements));
  }

 private:
  explicit Worker(std::shared_ptr<embedded::Core> core);
  std::shared_ptr<embedded::Core> core_;
};

}  // namespace chorus
