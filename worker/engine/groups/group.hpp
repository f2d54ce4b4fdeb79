// Collectives called from C++, in the process of the caller: one object per rank, no coordinator, no HTTP request.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/core/compression.hpp"
#include "collectives/core/result.hpp"
#include "collectives/plan/algorithm.hpp"
#include "worker/engine/data_plane.hpp"
#include "worker/engine/failure/interruption.hpp"
#include "worker/engine/groups/carried_calls.hpp"
#include "worker/engine/groups/group_messages.hpp"
#include "worker/engine/messages/message.hpp"
#include "worker/engine/program/group_membership.hpp"
#include "worker/engine/program/plan_cache.hpp"
#include "worker/memory/arena.hpp"
#include "worker/memory/regions/region_registry.hpp"

namespace chorus {

namespace engine {
class SharedCall;
class SharedGroup;
}  // namespace engine

struct CallOptions {
  plan::Algorithm const* algorithm = nullptr;  // every member passes the same
  plan::Rank root = 0;
  std::uint32_t arity = 2;
  plan::Shape shape;
  std::vector<plan::Rank> by_position;  // plan::Spec::by_position
  bool in_place = false;                // a rank with two buffers passes the same memory for both, the larger one
  // Elements per block; empty for blocks of equal size as far as possible. Equal on all members, except for all_to_all.
  std::vector<std::uint64_t> counts;
  std::vector<std::uint64_t> receive_counts;  // all_to_all with counts only
  // Sends codes of the elements: all_reduce, reduce, reduce_scatter, all_gather and broadcast of floats. Loses
  // precision: docs/reference/compressed_collectives.md. The same on all members. With `between` an algorithm that has
  // codes (plan::Algorithm::coded_from) sends them between the groups of its shape; where members share memory, and by
  // other algorithms, elements move.
  std::optional<Compression> compression;
  // With compression: name under which this member keeps what the codes lack of its contribution, which it adds to that
  // of the next call with the name and as many elements. Members may differ. Empty: nothing is kept.
  std::string error_feedback;
  // Hash of what members must agree on besides this, such as the pieces of the vector (fusion_digest); 0: nothing. If
  // it differs, all members fail with plan_mismatch.
  std::uint64_t agreement = 0;
  std::chrono::milliseconds timeout{30000};
  // GPU in which this member's buffers lie; null: host memory. May differ between members. Only if
  // GroupMemory::may_share is false; outlives the call.
  devices::GpuUnit* gpu = nullptr;
  std::uint64_t segment_bytes = engine::RunSpec{}.segment_bytes;
  std::uint32_t window = engine::RunSpec{}.window;
};

// Time left for a part of a call that ends at the deadline; at least a millisecond, so that the part reports what is
// late.
[[nodiscard]] std::chrono::milliseconds time_left(std::chrono::steady_clock::time_point deadline);

// What members on one host need to use each other's memory instead of the network. If one member has an `introduction`,
// all have the same: they find out before the first call whether all of them can.
struct GroupMemory {
  plan::Algorithm const* introduction = nullptr;  // an algorithm of all_gather; null: links only
  memory::Arena* arena = nullptr;                 // null: this member has none, so the group uses links
  memory::RegionRegistry* regions = nullptr;      // not null if there is an arena
  // False if this member may pass memory of a GPU: then the whole group uses links, as the members agree.
  bool may_share = true;
};

// A member of a group: its calls of collectives. Calls are matched by their order: the n-th call of every member is one
// collective. Members that call different things all fail with plan_mismatch. After a failure all later calls fail:
// make a group with a new epoch. One call at a time, from any thread.
class Group {
 public:
  // The plane, the cache and everything that `memory` points to outlive the group.
  Group(GroupMembership membership, engine::DataPlane& plane, engine::PlanCache& cache, GroupMemory memory = {});
  ~Group();
  Group(Group const&) = delete;
  Group& operator=(Group const&) = delete;

  // Every function blocks until this member has its result. Sizes are multiples of the element size. The spans do not
  // overlap unless options.in_place, and have the sizes that the operation defines: see plan::holding. Errors: PlanErrc
  // (nothing was sent) or EngineErrc.

  // output = reduction of all members' inputs; all spans have the same size. Pass the same memory twice for in place.
  [[nodiscard]] engine::RunResult all_reduce(std::span<std::byte const> input, std::span<std::byte> output, Dtype dtype,
                                             ReduceOp reduce, CallOptions options);

  // Runs any operation. Buffers that a member does not have are empty: the output of reduce except on the root, the
  // input of broadcast except on the root, and both in a barrier. `elements`: size of the whole vector, which for
  // operations with blocks is the concatenation of all blocks; of each member's vector in all_to_all; ignored with
  // counts.
  [[nodiscard]] engine::RunResult run(Op op, std::span<std::byte const> input, std::span<std::byte> output, Dtype dtype,
                                      ReduceOp reduce, std::uint64_t elements, CallOptions const& options);
  [[nodiscard]] engine::RunResult barrier(CallOptions const& options);

  // run() with memory in several non-empty pieces, which is neither packed nor unpacked. The pieces are input and
  // output if in place, otherwise the output. Not for operations with blocks; only after meet(), and only if path() is
  // "shm". Other members may pass one piece, or other pieces.
  [[nodiscard]] engine::RunResult run_in_pieces(Op op, std::span<std::byte const> input,
                                                std::span<std::span<std::byte> const> pieces, Dtype dtype,
                                                ReduceOp reduce, std::uint64_t elements, CallOptions const& options);

  // Finds out whether all members share memory; otherwise the first call does. All members call it, or none. No effect
  // after the first time.
  [[nodiscard]] engine::RunResult meet(std::chrono::milliseconds timeout);

  // Messages to and from single members, also to this one. Any thread, any number at a time, also during a call; the
  // numbers and deadlines of requests are ignored.
  //
  // Sends a small message, or receives one that comes within a moment, and returns its bytes. Empty: nothing has
  // happened, and the message needs one of the functions below.
  [[nodiscard]] std::optional<std::uint64_t> run_message_at_once(engine::MessageRequest const& request) {
    return messages_.run_at_once(request);
  }
  // Begins these messages and waits for the end of all of them.
  void run_messages(std::span<engine::MessageRequest> requests, std::chrono::milliseconds timeout,
                    std::span<engine::MessageResult> results) {
    messages_.run(requests, timeout, results);
  }
  // Begins one, and returns the number by which a receive can be cancelled. `done` is called once, possibly at once, on
  // the data thread or one that does its work; also after this object is gone.
  std::uint64_t begin_message(engine::MessageRequest request, std::chrono::milliseconds timeout,
                              engine::MessageDone done) {
    return messages_.begin(request, timeout, std::move(done));
  }
  // Ends a receive that begin_message() has begun, if no message has met it: then `done` has been told so, and true is
  // returned. Otherwise the receive goes on. Any thread, but not in `done`.
  [[nodiscard]] bool cancel_receive(std::uint64_t receive) { return messages_.cancel(receive); }

  // Any thread, also during a call. The current call ends with this error, here and then at the other members; all
  // later calls fail too.
  void interrupt(engine::EngineErrc code, std::string const& why);
  // The same, and tells members that share memory also if there is no current call: their next call ends.
  void fail(engine::EngineErrc code, std::string const& why);

  // Pass memory of the arena (memory::Arena) to avoid copies between members that share memory. Other memory works as
  // well, and is copied once on its way.

  // "shm" or "links"; "unknown" before the first call. Any thread, not during a call. why_not_shared(): the reason for
  // "links".
  [[nodiscard]] std::string_view path() const;
  [[nodiscard]] std::string const& why_not_shared() const { return why_not_shared_; }

 private:
  struct Request;
  struct Prepared;
  // A call that is under way. It may end well, or before it enters, although fail() was called meanwhile.
  struct Calling {
    explicit Calling(Group& of) : group(of), lock(of.calling_) {}
    ~Calling() {
      lock.unlock();
      group.tell_if_failed();
    }
    Group& group;
    std::unique_lock<std::mutex> lock;
  };

  [[nodiscard]] engine::RunResult run_prepared(Request const& request, std::span<std::byte const> input,
                                               std::span<std::byte> output);
  [[nodiscard]] engine::RunResult run_as_it_is(Prepared& prepared, Request const& request,
                                               std::span<std::byte const> input, std::span<std::byte> output);
  [[nodiscard]] engine::RunResult run_over_links(Prepared& prepared, Request const& request,
                                                 std::span<std::byte const> input, std::span<std::byte> output);
  [[nodiscard]] engine::RunResult run_shared(Prepared& prepared, Request const& request,
                                             std::span<std::byte const> input, std::span<std::byte> output);
  [[nodiscard]] engine::RunResult run_shared(Prepared& prepared, std::span<std::byte const> input,
                                             std::span<std::byte> output, std::chrono::milliseconds timeout);
  [[nodiscard]] std::shared_ptr<engine::RunKind> runs_of(Prepared const& prepared, Request const& request) const;
  [[nodiscard]] Result<Prepared*> prepare(Request const& request);
  [[nodiscard]] engine::RunResult introduce(std::chrono::milliseconds timeout);
  [[nodiscard]] engine::RunResult gather(std::span<std::byte const> own, std::span<std::byte> all,
                                         std::chrono::milliseconds timeout);
  // Tells members that share memory of fail(), unless a call is under way: then the call does when it ends.
  void tell_if_failed();
  // Counts a call that has ended, and reports it to the flight recorder if there is one.
  void ended(Prepared& prepared, engine::RunResult& result, std::uint64_t run = 0);
  [[nodiscard]] std::shared_ptr<engine::FlightKind> kind_of(Prepared const& prepared) const;
  // The error of every later call, if there is one. Call with the lock held.
  [[nodiscard]] std::optional<Error> standing_error() const;

  GroupMembership const membership_;
  engine::DataPlane& plane_;
  engine::PlanCache& cache_;
  std::mutex calling_;  // held for a whole call
  std::uint64_t sequence_ = 0;
  std::optional<Error> broken_;
  engine::Interruption interruption_;
  // fail() was called. Stored before it tries the lock, and read after a call has released it: one of the two tells the
  // other members.
  std::atomic<bool> has_failed_{false};
  // Number of the run over links; 0 while there is none. Stored before a run checks for an interruption, and read after
  // the interruption is set: either the run sees the interruption before it begins, or interrupt() sees the run.
  std::atomic<std::uint64_t> running_{0};

  GroupMemory const memory_;
  engine::CarriedCalls carried_calls_;
  engine::GroupMessages messages_;
  bool has_met_ = false;
  std::string why_not_shared_;
  std::shared_ptr<engine::FlightLane> lane_;         // for calls over shared memory; null: not recorded
  std::unique_ptr<engine::SharedGroup> shared_;      // null unless all members share memory
  std::vector<std::unique_ptr<Prepared>> prepared_;  // the most recently used first
};

}  // namespace chorus
