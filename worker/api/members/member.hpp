// One worker's place in one epoch of a group, and its calls.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>

#include "metrics/runs/run_ledger.hpp"
#include "worker/api/members/buffers.hpp"
#include "worker/api/members/chooser.hpp"
#include "worker/api/members/pending_call.hpp"
#include "worker/api/members/turns.hpp"
#include "worker/engine/groups/fused_blocks.hpp"
#include "worker/engine/groups/fused_calls.hpp"
#include "worker/engine/groups/group.hpp"
#include "worker/service/collectives/group.hpp"

namespace chorus::embedded {

class Member;

// What the calls of a worker's members share; `owner` keeps it all alive.
struct Machinery {
  std::shared_ptr<void const> owner;
  engine::DataPlane* plane = nullptr;
  engine::PlanCache* plans = nullptr;
  memory::RegionRegistry* regions = nullptr;
  memory::Arena* arena = nullptr;  // null: no memory is shared
  // Tells the coordinator of a call that failed. Any thread.
  std::function<void(::chorus::api::Trouble)> report;
  // Makes the group of this name, of these ids in the order of their ranks, and joins it. Any thread.
  using TimePoint = std::chrono::steady_clock::time_point;
  std::function<Result<std::shared_ptr<Member>>(std::string const& name, std::vector<std::string> ids,
                                                TimePoint deadline)>
      create;
  std::shared_ptr<metrics::RunLedger> ledger;  // of one member
};

// A list of tensors for an operation with blocks. In place `inputs` is empty.
struct BlockLists {
  std::vector<ConstTensorView> inputs;
  std::vector<TensorView> outputs;
  bool in_place = false;
};

// All functions from any thread.
class Member : public std::enable_shared_from_this<Member> {
 public:
  Member(Machinery machinery, service::Assignment const& assignment);
  ~Member();  // interrupts what is queued, joins the thread and waits for the ends of messages
  Member(Member const&) = delete;
  Member& operator=(Member const&) = delete;

  [[nodiscard]] std::string const& name() const { return name_; }
  [[nodiscard]] std::uint32_t epoch() const { return epoch_; }
  [[nodiscard]] Place place() const { return place_; }
  // Both on a turn: a group may not be asked during a call.
  [[nodiscard]] std::string path();
  [[nodiscard]] std::string why_not_shared();

  // A call has failed, or the epoch has ended: no call will succeed any more.
  [[nodiscard]] bool is_over() const { return is_over_.load(std::memory_order_acquire); }
  [[nodiscard]] std::string why_over() const;
  // Ranks that the failure names, ascending; empty where no member is to blame.
  [[nodiscard]] std::vector<std::uint32_t> culprits() const;

  // See JoinedGroup.
  [[nodiscard]] Result<std::shared_ptr<Member>> subgroup(std::vector<std::uint32_t> const& ranks,
                                                         Machinery::TimePoint deadline);
  [[nodiscard]] std::vector<std::string> ids() const;

  // Those without a root that have ended well, for the coordinator.
  [[nodiscard]] ::chorus::api::GroupCalls calls() const;

  // What the worker now knows of the group; null if it is no member any more.
  void follow(service::Assignment const* assignment);
  void interrupt(engine::EngineErrc code, std::string const& why, std::vector<std::uint32_t> culprits = {});

  using Options = CollectiveOptions;
  [[nodiscard]] Status call(Op op, ConstTensorView input, TensorView output, bool in_place, Options const& options);
  [[nodiscard]] Status call(Op op, std::span<TensorView const> tensors, Options const& options);
  [[nodiscard]] Status call(Op op, BlockLists const& lists, Options const& options);
  [[nodiscard]] std::shared_ptr<PendingCall> begin(Op op, ConstTensorView input, TensorView output, bool in_place,
                                                   Options options);
  [[nodiscard]] std::shared_ptr<PendingCall> begin(Op op, std::span<TensorView const> tensors, Options options);
  [[nodiscard]] std::shared_ptr<PendingCall> begin(Op op, BlockLists lists, Options options);

  // Messages: see JoinedGroup.
  [[nodiscard]] Status send(ConstTensorView tensor, std::uint32_t peer, MessageOptions const& options);
  [[nodiscard]] Result<Received> recv(TensorView tensor, std::uint32_t source, MessageOptions const& options);
  [[nodiscard]] Result<Received> sendrecv(ConstTensorView sent, std::uint32_t peer, TensorView received,
                                          std::uint32_t source, MessageOptions const& options);
  [[nodiscard]] std::shared_ptr<PendingCall> begin_send(ConstTensorView tensor, std::uint32_t peer,
                                                        MessageOptions const& options);
  [[nodiscard]] std::shared_ptr<PendingCall> begin_recv(TensorView tensor, std::uint32_t source,
                                                        MessageOptions const& options, Received* received);
  [[nodiscard]] std::shared_ptr<PendingCall> begin_sendrecv(ConstTensorView sent, std::uint32_t peer, TensorView into,
                                                            std::uint32_t source, MessageOptions const& options,
                                                            Received* received);

 private:
  struct Job {
    Turns::Ticket ticket;
    std::function<Status()> run;
    std::shared_ptr<PendingCall> pending;
  };

  // More is never meant, and would not fit into a point of time.
  static constexpr std::chrono::milliseconds timeout_max = std::chrono::hours(24 * 365);
  [[nodiscard]] static Status check_timeout(std::chrono::milliseconds timeout);
  [[nodiscard]] static std::chrono::milliseconds limited(std::chrono::milliseconds timeout) {
    return std::min(timeout, timeout_max);
  }
  [[nodiscard]] static Status check_feedback(Options const& options, bool is_list);

  // When it is their turn.
  [[nodiscard]] Status run(Op op, ConstTensorView input, TensorView output, bool in_place, Options const& options);
  // Those of lists are in member_lists.cpp.
  [[nodiscard]] Status run(Op op, std::span<TensorView const> tensors, Options const& options);
  [[nodiscard]] Status run(Op op, BlockLists const& lists, Options const& options);
  // What is wrong with options of a list, whatever its tensors are; and what with the dtype of one of them.
  [[nodiscard]] Status check_list(Op op, Options const& options) const;
  [[nodiscard]] static Status check_listed(Op op, Dtype dtype, Options const& options);
  using RunList = std::function<engine::RunResult(engine::ChooseForBucket const& choose)>;
  [[nodiscard]] Status run_list(Op op, bool in_place, Options const& options, RunList const& run);
  // What is left of the timeout when everybody has met.
  [[nodiscard]] Result<std::chrono::milliseconds> meet(Options const& options);
  [[nodiscard]] Status finish(engine::RunResult result);
  void count(metrics::FinishedRun& run, engine::RunResult const& result);
  void end_with(Error why, std::vector<std::uint32_t> culprits);
  // The failure of a call by which the epoch ends; reported to the coordinator.
  void end_by(Error const& why, std::vector<std::uint32_t> const& culprits);
  // Error of every call from now on.
  [[nodiscard]] Status standing() const;

  [[nodiscard]] Result<engine::MessageRequest> to_send(ConstTensorView tensor, std::uint32_t peer,
                                                       MessageOptions const& options) const;
  [[nodiscard]] Result<engine::MessageRequest> to_receive(TensorView tensor, std::uint32_t source,
                                                          MessageOptions const& options) const;
  [[nodiscard]] Status check_message(std::string_view what, std::uint32_t peer, MessageOptions const& options) const;
  [[nodiscard]] Status finish_message(engine::MessageResult const& result);
  // The last result is that of the receive, if there is one.
  [[nodiscard]] Result<Received> finish_messages(std::span<engine::MessageResult const> results);
  [[nodiscard]] std::shared_ptr<PendingCall> begin_messages(Result<std::vector<engine::MessageRequest>> const& requests,
                                                            std::chrono::milliseconds timeout, Received* received);

  [[nodiscard]] std::shared_ptr<PendingCall> submit(std::function<Status()> run);
  void work();

  std::string const name_;
  std::uint32_t const epoch_;
  Place const place_;
  service::Assignment const assignment_;
  Machinery const machinery_;
  Group group_;
  engine::FusedCalls fused_;
  engine::FusedBlocks fused_blocks_;
  Chooser chooser_;
  CheckedBuffers checked_;  // on one's turn
  Turns turns_;
  bool has_met_ = false;           // on one's turn
  metrics::FinishedRun finished_;  // likewise; not made anew for each call, as GCC 12 clears it by `rep stos`

  // The time of a call is there before it is counted.
  std::atomic<std::uint64_t> calls_{0}, calls_ns_{0};
  std::atomic<bool> is_over_{false};
  mutable std::mutex ending_;
  std::optional<Error> over_;            // the first reason
  std::vector<std::uint32_t> culprits_;  // of the same failure

  std::mutex dividing_;
  std::map<std::string, std::uint64_t> subgroups_;  // made so far, by the digest of their ranks

  std::mutex messaging_;
  std::condition_variable message_ended_;
  std::uint64_t messages_begun_ = 0;  // and not ended

  std::mutex queueing_;
  std::condition_variable queued_;
  std::deque<Job> jobs_;
  bool ends_ = false;
  std::thread thread_;  // from the first asynchronous call on
};

}  // namespace chorus::embedded
