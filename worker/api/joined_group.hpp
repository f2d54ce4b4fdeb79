// A group that this process is a member of, in one epoch: the collectives.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/core/compression.hpp"
#include "collectives/core/op.hpp"
#include "collectives/core/reduce_op.hpp"
#include "collectives/core/result.hpp"
#include "worker/api/element.hpp"

namespace chorus {

namespace embedded {
class Member;
class PendingCall;
}  // namespace embedded

// Every member passes the same, but for the timeout, the error feedback, and for the counts of all_to_all.
struct CollectiveOptions {
  ReduceOp reduce = ReduceOp::sum;             // of all_reduce, reduce and reduce_scatter
  std::uint32_t root = 0;                      // of reduce, broadcast, gather and scatter
  std::string algorithm = "auto";              // or a name out of docs/reference/algorithms.md
  std::optional<std::uint32_t> arity;          // of an algorithm that was named and takes one
  std::vector<std::uint32_t> algorithm_shape;  // likewise
  // Sends codes, of a format or {format, level}; or CompressionWish::automatic(formats), the fastest of the formats, or
  // elements where these are faster. docs/reference/compressed_collectives.md.
  std::optional<CompressionWish> compression;
  // With compression of one tensor, a name: what the codes lack of the contribution is kept under it, a float for each
  // element while the group's epoch lasts, and is added to the next contribution of that name and size.
  std::string error_feedback;
  std::vector<std::uint64_t> counts;          // elements per block, where blocks are not as equal as can be
  std::vector<std::uint64_t> receive_counts;  // of all_to_all with counts: elements from each rank
  std::chrono::milliseconds timeout{30000};   // from when the call begins, which is when those before it have ended
};

// A receive from any source takes the message of its tag that has arrived first.
inline constexpr std::uint32_t any_source = 0xffffffff;

// Of a message to or from one member.
struct MessageOptions {
  std::uint32_t tag = 0;                     // 0 to 2147483647: a receive takes messages of its own tag only
  std::chrono::milliseconds timeout{30000};  // from the call on
};

// What a receive has got.
struct Received {
  std::uint32_t source = 0;  // rank of the sender
  std::uint64_t bytes = 0;   // may be fewer than there was room for
};

// A call that was begun. Dropping it waits for the call's end, for until then its buffers are in use; that takes no
// longer than the timeouts of the calls that were issued before it and its own. May outlive the group object. One
// thread, but for cancel(), which another one may call while the first waits.
class [[nodiscard]] Handle {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  explicit Handle(std::shared_ptr<embedded::PendingCall> call);
  ~Handle();
  Handle(Handle&&) noexcept;
  Handle& operator=(Handle&&) noexcept;  // waits for the one that is replaced

  [[nodiscard]] bool is_done() const;
  // How it ended. As often as one likes.
  [[nodiscard]] Status wait() const;
  // The same, or nothing if it has not ended by then.
  [[nodiscard]] std::optional<Status> wait_until(TimePoint deadline) const;

  // Cancels a receive (JoinedGroup::recv_async) that no message has met: the call ends with WorkerErrc::cancelled, its
  // memory is the caller's again, and a message that arrives later goes to the next receive. Ok also if the call was
  // cancelled before. Otherwise WorkerErrc::not_cancellable, and the call goes on: it has ended, the receive has met
  // its message, or it is no receive. A send may have been received already. A collective is never cancelled, whether
  // it has begun or waits for its turn: the other members count on this member's call of it.
  [[nodiscard]] Status cancel() const;

 private:
  friend std::optional<std::size_t> wait_any(std::span<Handle const* const> handles, TimePoint deadline);
  std::shared_ptr<embedded::PendingCall> call_;
};

// Position of the first handle in the list whose call has ended; waits for one until the deadline. Nothing if none has
// ended by then, or the list is empty. Calls may be of several groups.
[[nodiscard]] std::optional<std::size_t> wait_any(std::span<Handle const* const> handles, Handle::TimePoint deadline);

// Calls of all members are matched by their order: the n-th call of each is one collective, whether it blocks or not.
// Calls of one object and its copies run one after the other, in the order in which they were issued, from any thread.
//
// A call that is refused before anything is sent (WorkerErrc::bad_argument, PlanErrc) has no place in that order: a
// corrected one fits. Any other failure ends the epoch for this object: every later call says why, and Worker::join
// gives the next epoch once the coordinator has made one. Until its call has ended memory is neither written nor freed
// by the caller, and not read if the call writes to it. After a failure the contents of what a call writes to are
// unspecified.
//
// A value: copies are the same member. May outlive the worker, and then fails every call.
class JoinedGroup {
 public:
  explicit JoinedGroup(std::shared_ptr<embedded::Member> member);

  [[nodiscard]] std::string const& name() const;
  [[nodiscard]] std::uint32_t rank() const;
  [[nodiscard]] std::uint32_t size() const;
  [[nodiscard]] std::uint32_t epoch() const;

  // "shm" where all members share memory, "links" where not; "unknown" before the first call.
  [[nodiscard]] std::string path() const;
  // Where that is "links": which member has no memory to share or does not see another's, and why; otherwise empty.
  // Members may know different parts of it. Like path() from any thread, and both wait for the calls that were issued
  // before.
  [[nodiscard]] std::string why_not_shared() const;

  // Ranks that the failure which ended the epoch names, ascending. Empty while the epoch goes on, and where no member
  // is to blame.
  [[nodiscard]] std::vector<std::uint32_t> culprits() const;

  // Elements of block `rank` of a vector of so many, where no counts say otherwise.
  struct Block {
    std::uint64_t begin = 0;
    std::uint64_t elements = 0;
  };
  [[nodiscard]] Block block(std::uint32_t rank, std::uint64_t elements) const;

  // Makes a group of some members, each rank once, of which `ranks`[r] has rank r in the new group; these call it, with
  // the same list, and no others. Several groups of one list are several groups; Worker::delete_group() takes the name
  // of one. Has nothing to do with the order of calls. Errors as of Worker::create_group(), and bad_argument for ranks
  // that the group does not have, or without the caller's.
  [[nodiscard]] Result<JoinedGroup> subgroup(std::vector<std::uint32_t> const& ranks,
                                             std::chrono::steady_clock::time_point deadline) const;

  using Options = CollectiveOptions;

  // In place: `tensor` becomes the reduction of all members' tensors. The other form leaves the input as it is; both
  // are of the same size, and the same memory for both, on every member, is in place.
  Status all_reduce(TensorView tensor, Options const& options = {});
  Status all_reduce(ConstTensorView input, TensorView output, Options const& options = {});
  Handle all_reduce_async(TensorView tensor, Options options = {});
  Handle all_reduce_async(ConstTensorView input, TensorView output, Options options = {});

  // The same, but only at the root; the others' tensors stay as they are, and they pass no output.
  Status reduce(TensorView tensor, Options const& options = {});
  Status reduce(ConstTensorView input, TensorView output, Options const& options = {});
  Handle reduce_async(TensorView tensor, Options options = {});
  Handle reduce_async(ConstTensorView input, TensorView output, Options options = {});

  // Everybody's tensor becomes the root's.
  Status broadcast(TensorView tensor, Options const& options = {});
  Handle broadcast_async(TensorView tensor, Options options = {});

  // Everybody gets the blocks of all, in rank order. In place: `tensor` is the whole, and holds the own block where it
  // belongs.
  Status all_gather(TensorView tensor, Options const& options = {});
  Status all_gather(ConstTensorView own, TensorView whole, Options const& options = {});
  Handle all_gather_async(TensorView tensor, Options options = {});
  Handle all_gather_async(ConstTensorView own, TensorView whole, Options options = {});

  // Everybody gets its own block of the reduction. In place: it is left where it belongs in `tensor`, and the rest of
  // that is unspecified.
  Status reduce_scatter(TensorView tensor, Options const& options = {});
  Status reduce_scatter(ConstTensorView whole, TensorView own, Options const& options = {});
  Handle reduce_scatter_async(TensorView tensor, Options options = {});
  Handle reduce_scatter_async(ConstTensorView whole, TensorView own, Options options = {});

  // The root gets the blocks of all, in rank order; the others pass no `whole`. Without counts blocks are of one size.
  Status gather(ConstTensorView own, TensorView whole, Options const& options = {});
  Handle gather_async(ConstTensorView own, TensorView whole, Options options = {});

  // Everybody gets its own block of what the root has; the others pass no `whole`. Without counts blocks are of one
  // size.
  Status scatter(ConstTensorView whole, TensorView own, Options const& options = {});
  Handle scatter_async(ConstTensorView whole, TensorView own, Options options = {});

  // Block d of the input goes to rank d, block s of the output comes from rank s. In place: of equal blocks only.
  Status all_to_all(TensorView tensor, Options const& options = {});
  Status all_to_all(ConstTensorView input, TensorView output, Options const& options = {});
  Handle all_to_all_async(TensorView tensor, Options options = {});
  Handle all_to_all_async(ConstTensorView input, TensorView output, Options options = {});

  // Returns when every member has called it.
  Status barrier(Options const& options = {});
  Handle barrier_async(Options options = {});

  // Messages between two members. They have nothing to do with the order of the collectives, and any number may be
  // under way at a time, in any threads. A receive takes the first message of its source and tag in the order in which
  // they were sent; of several receives that fit, a message goes to the one that was called first. Elements of all
  // dtypes are bytes here; the message may be shorter than `tensor`. `peer` and `source` may be this member itself.
  //
  // send() returns when the tensor may change: a message of up to about 256 KiB may wait at the receiver without a
  // receive; a larger one is sent when its receive has been called. Members that both send before they receive, and
  // one that sends itself more than that, use sendrecv(), or the asynchronous forms.
  //
  // Errors: WorkerErrc::bad_argument: nothing was sent. EngineErrc::deadline_exceeded of a receive that no message has
  // met: it has no effect. Any other failure ends the epoch, as that of a collective does, on both members:
  // plan_mismatch if the message is larger than `tensor`, into which nothing is written then; aborted if more messages
  // wait at a receiver than it keeps of one sender (1024, and 32 MiB).
  Status send(ConstTensorView tensor, std::uint32_t peer, MessageOptions const& options = {});
  Result<Received> recv(TensorView tensor, std::uint32_t source, MessageOptions const& options = {});
  // Both at once, with the same tag.
  Result<Received> sendrecv(ConstTensorView sent, std::uint32_t peer, TensorView into, std::uint32_t source,
                            MessageOptions const& options = {});
  Handle send_async(ConstTensorView tensor, std::uint32_t peer, MessageOptions const& options = {});
  // *received, if given, is written before the handle is done, and only if the call has succeeded.
  Handle recv_async(TensorView tensor, std::uint32_t source, MessageOptions const& options = {},
                    Received* received = nullptr);
  Handle sendrecv_async(ConstTensorView sent, std::uint32_t peer, TensorView into, std::uint32_t source,
                        MessageOptions const& options = {}, Received* received = nullptr);

  // Many tensors in place, of any sizes and dtypes, the same list on every member: small ones share a call. They do not
  // overlap, except for broadcast. After a failure some may have their results and others not.
  Status all_reduce(std::span<TensorView const> tensors, Options const& options = {});
  Status reduce(std::span<TensorView const> tensors, Options const& options = {});
  Status broadcast(std::span<TensorView const> tensors, Options const& options = {});
  // The list is copied, what it refers to is not.
  Handle all_reduce_async(std::span<TensorView const> tensors, Options options = {});
  Handle reduce_async(std::span<TensorView const> tensors, Options options = {});
  Handle broadcast_async(std::span<TensorView const> tensors, Options options = {});

  // Operations with blocks on many tensors: the i-th output is as from a call with the i-th input alone, small ones
  // share a call. In place, with one list, as that call in place. Blocks are as equal as can be: no counts. The lists
  // have the same sizes and dtypes on every member, which differ from tensor to tensor as they like. No output overlaps
  // another tensor of the lists.
  Status all_gather(std::span<TensorView const> tensors, Options const& options = {});
  Status all_gather(std::span<ConstTensorView const> inputs, std::span<TensorView const> outputs,
                    Options const& options = {});
  Handle all_gather_async(std::span<TensorView const> tensors, Options options = {});
  Handle all_gather_async(std::span<ConstTensorView const> inputs, std::span<TensorView const> outputs,
                          Options options = {});
  Status reduce_scatter(std::span<TensorView const> tensors, Options const& options = {});
  Status reduce_scatter(std::span<ConstTensorView const> inputs, std::span<TensorView const> outputs,
                        Options const& options = {});
  Handle reduce_scatter_async(std::span<TensorView const> tensors, Options options = {});
  Handle reduce_scatter_async(std::span<ConstTensorView const> inputs, std::span<TensorView const> outputs,
                              Options options = {});
  Status all_to_all(std::span<TensorView const> tensors, Options const& options = {});
  Status all_to_all(std::span<ConstTensorView const> inputs, std::span<TensorView const> outputs,
                    Options const& options = {});
  Handle all_to_all_async(std::span<TensorView const> tensors, Options options = {});
  Handle all_to_all_async(std::span<ConstTensorView const> inputs, std::span<TensorView const> outputs,
                          Options options = {});

 private:
  std::shared_ptr<embedded::Member> member_;
};

}  // namespace chorus
