// One worker's place in one epoch of a group, and its calls.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "metrics/runs/run_ledger.hpp"
#include "worker/api/members/buffers.hpp"
#include "worker/api/members/call_frame.hpp"
#include "worker/api/members/call_queue.hpp"
#include "worker/api/members/chooser.hpp"
#include "worker/api/members/epoch_end.hpp"
#include "worker/api/members/list_calls.hpp"
#include "worker/api/members/machinery.hpp"
#include "worker/api/members/member_messages.hpp"
#include "worker/api/members/pending_call.hpp"
#include "worker/api/members/subgroups.hpp"
#include "worker/api/members/turns.hpp"
#include "worker/engine/groups/group.hpp"
#include "worker/service/collectives/groups/group.hpp"

namespace chorus::embedded {

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

  [[nodiscard]] EpochEnd const& end() const { return end_; }

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

  [[nodiscard]] MemberMessages& messages() { return messages_; }

 private:
  // When it is their turn.
  [[nodiscard]] Status run(Op op, ConstTensorView input, TensorView output, bool in_place, Options const& options);

  std::string const name_;
  std::uint32_t const epoch_;
  Place const place_;
  service::Assignment const assignment_;
  Machinery const machinery_;
  Group group_;
  EpochEnd end_;
  CallFrame frame_;
  Chooser chooser_;
  ListCalls lists_;
  CheckedBuffers checked_;         // on one's turn
  metrics::FinishedRun finished_;  // likewise; not made anew for each call, as GCC 12 clears it by `rep stos`
  Subgroups subgroups_;
  MemberMessages messages_;
  Turns turns_;
  CallQueue queue_;
};

}  // namespace chorus::embedded
