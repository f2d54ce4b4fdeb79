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

#include "collectives/core/result.hpp"
#include "collectives/plan/algorithm.hpp"
#include "worker/engine/data_plane.hpp"
#include "worker/engine/interruption.hpp"
#include "worker/engine/plan_cache.hpp"
#include "worker/memory/arena.hpp"
#include "worker/memory/region_book.hpp"

namespace chorus {

namespace engine {
class SharedCall;
class SharedGroup;
}  // namespace engine

// Who takes part. The same on every member, except for `rank`.
struct GroupMembership {
  std::string name;
  std::uint32_t epoch = 1;
  plan::Rank rank = 0;
  std::vector<engine::Peer> members;  // in rank order
  std::uint64_t token = 0;            // presented by the links of the group's calls
};

struct CallOptions {
  plan::Algorithm const* algorithm = nullptr;  // every member passes the same
  plan::Rank root = 0;
  std::uint32_t arity = 2;
  plan::Shape shape;
  bool in_place = false;  // every rank that has both buffers passes the same memory for both, the larger of the two
  // Elements per block, where blocks are not as equal as can be; the same on every member, but for all_to_all.
  std::vector<std::uint64_t> counts;
  std::vector<std::uint64_t> receive_counts;  // all_to_all with counts only
  // What else members must agree on, such as of which pieces the vector consists (fusion_digest); 0: nothing. Members
  // that differ all fail with plan_mismatch.
  std::uint64_t agreement = 0;
  std::chrono::milliseconds timeout{30000};
  // Where this member's buffers lie; null: host memory. Others may have theirs elsewhere. Only of members whose
  // GroupMemory may not be shared; outlives the call.
  devices::GpuUnit* gpu = nullptr;
  std::uint64_t segment_bytes = engine::RunSpec{}.segment_bytes;
  std::uint32_t window = engine::RunSpec{}.window;
};

// For a call that is a part of another one, which has to end then. At least a millisecond: the call says what is late.
[[nodiscard]] std::chrono::milliseconds time_left(std::chrono::steady_clock::time_point deadline);

// What a group needs so that members on one host use each other's memory instead of the network. Members that have an
// `introduction` all have the same one; then they find out before the first call whether all of them can.
struct GroupMemory {
  plan::Algorithm const* introduction = nullptr;  // of all_gather; null: this group uses links only
  memory::Arena* arena = nullptr;                 // null: this member has none, so the group uses links
  memory::RegionBook* regions = nullptr;          // not null where there is an arena
  // False of a member that may pass memory of a GPU: then all of the group use links, which is agreed with the others.
  bool may_share = true;
};

// Calls are matched by their order: the n-th call of every member is one collective. Members that call different things
// all fail with plan_mismatch. After a failure every later call fails too: make a group of a new epoch.
// One call at a time, from any thread.
class Group {
 public:
  // The plane, the cache, and what `memory` points to outlive the group.
  Group(GroupMembership membership, engine::DataPlane& plane, engine::PlanCache& cache, GroupMemory memory = {});
  ~Group();
  Group(Group const&) = delete;
  Group& operator=(Group const&) = delete;

  // Every function blocks until this member has its result. Sizes are multiples of the dtype's. Unless
  // options.in_place, the spans do not overlap, and hold what the operation defines: see plan::holding. The status:
  // PlanErrc (nothing was sent) or EngineErrc.

  // output = the reduction of every member's input, of the same size. The same memory for both is in place.
  [[nodiscard]] engine::RunResult all_reduce(std::span<std::byte const> input, std::span<std::byte> output, Dtype dtype,
                                             ReduceOp reduce, CallOptions options);

  // Any other operation. Buffers that a member does not have (the output of reduce but on the root, the input of
  // broadcast but on the root) are empty. `elements` of the whole vector, the concatenation of the blocks where there
  // are blocks; of every member's in all_to_all; not used with counts. In a barrier there are no buffers to pass.
  [[nodiscard]] engine::RunResult run(Op op, std::span<std::byte const> input, std::span<std::byte> output, Dtype dtype,
                                      ReduceOp reduce, std::uint64_t elements, CallOptions const& options);
  [[nodiscard]] engine::RunResult barrier(CallOptions const& options);

  // As run(), with memory that lies in several pieces, none of them empty: nobody packs and unpacks it. In place they
  // are what run() takes as input and output; otherwise they are the output. Not of operations with blocks; only after
  // meet(), and only if path() is "shm"; other members may have theirs in one piece, or in others.
  [[nodiscard]] engine::RunResult run_in_pieces(Op op, std::span<std::byte const> input,
                                                std::span<std::span<std::byte> const> pieces, Dtype dtype,
                                                ReduceOp reduce, std::uint64_t elements, CallOptions const& options);

  // Finds out whether all members share memory, which the first call does otherwise; every member calls it then.
  // Nothing after the first time.
  [[nodiscard]] engine::RunResult meet(std::chrono::milliseconds timeout);

  // Any thread, also during a call: the call that is under way ends with this error, here and then at the others, and
  // so does every later one.
  void interrupt(engine::EngineErrc code, std::string const& why);

  // Memory that calls read and write without a copy where members share memory: see memory::Arena. Memory that comes
  // from elsewhere works as well, and is copied once on its way to others.

  // "shm" or "links", and why not "shm"; before the first call "unknown". Any thread, not during a call.
  [[nodiscard]] std::string_view path() const;
  [[nodiscard]] std::string const& why_not_shared() const { return why_not_shared_; }

 private:
  struct Request;
  struct Prepared;

  [[nodiscard]] engine::RunResult run_prepared(Request const& request, std::span<std::byte const> input,
                                               std::span<std::byte> output);
  [[nodiscard]] engine::RunResult run_over_links(Request const& request, std::span<std::byte const> input,
                                                 std::span<std::byte> output);
  [[nodiscard]] engine::RunResult run_shared(Request const& request, std::span<std::byte const> input,
                                             std::span<std::byte> output);
  [[nodiscard]] engine::RunResult run_shared(Prepared& prepared, std::span<std::byte const> input,
                                             std::span<std::byte> output, std::chrono::milliseconds timeout);
  [[nodiscard]] std::shared_ptr<engine::RunKind> runs_of(Prepared const& prepared, Request const& request) const;
  [[nodiscard]] Result<Prepared*> prepare(Request const& request);
  [[nodiscard]] engine::RunResult introduce(std::chrono::milliseconds timeout);
  [[nodiscard]] engine::RunResult gather(std::span<std::byte const> own, std::span<std::byte> all,
                                         std::chrono::milliseconds timeout);
  // The call has ended: counts it, and tells the flight recorder, if there is one.
  void ended(Prepared& prepared, engine::RunResult& result, std::uint64_t run = 0);
  [[nodiscard]] std::shared_ptr<engine::FlightKind> kind_of(Prepared const& prepared) const;
  // What makes every later call fail; with the lock held.
  [[nodiscard]] std::optional<Error> standing_error() const;

  GroupMembership const membership_;
  engine::DataPlane& plane_;
  engine::PlanCache& cache_;
  std::mutex calling_;  // held for a whole call
  std::uint64_t sequence_ = 0;
  std::optional<Error> broken_;
  engine::Interruption interruption_;
  // Of the run over links, 0 while there is none. Written before a run looks whether it is interrupted, and read after
  // that was said: one that is interrupted sees it before it begins, or is known here.
  std::atomic<std::uint64_t> running_{0};

  GroupMemory const memory_;
  bool has_met_ = false;
  std::string why_not_shared_;
  std::shared_ptr<engine::FlightLane> lane_;         // of calls over shared memory; null: nobody keeps them
  std::unique_ptr<engine::SharedGroup> shared_;      // null unless all members share memory
  std::vector<std::unique_ptr<Prepared>> prepared_;  // the last one used first
};

}  // namespace chorus
