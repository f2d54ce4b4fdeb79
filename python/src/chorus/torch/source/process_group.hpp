// The backend "chorus" of torch.distributed: what c10d asks of a process group, as calls of the library.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "arguments.hpp"
#include "base.hpp"
#include "membership.hpp"
#include "memory.hpp"
#include "messages.hpp"
#include "monitored_barrier.hpp"

namespace chorus::process_group {

using WorkPtr = c10::intrusive_ptr<c10d::Work>;

// All functions from any thread. Every call returns at once, except for the monitored barrier.
class ProcessGroup : public Base {
 public:
  ProcessGroup(Store store, int rank, int size, std::unique_ptr<Membership> membership)
      : Base(rank, size),
        membership_(std::move(membership)),
        monitored_(std::move(store), rank, size),
        messages_(*membership_) {}

  // Waits for the end of all calls; none follows. Returns false, at once, in a child of fork().
  bool finish() {
    if (membership_->is_foreign()) return false;
    membership_->finish();
    return true;
  }

  const std::string getBackendName() const override { return "chorus"; }

  WorkPtr broadcast(Tensors& tensors, const c10d::BroadcastOptions& opts = {}) override {
    constexpr Kind kind{"broadcast", c10d::OpType::BROADCAST, "chorus:broadcast"};
    auto const tensor = one(tensors, kind);
    bool const sends = opts.rootRank == rank_;
    return begin(kind, {tensor}, {tensor}, with_root(opts), [tensor, sends](auto* group, auto* how, auto* error) {
      Written x(tensor, sends);
      auto const status = chorus_broadcast(group, x.view(), how, error);
      if (!sends) x.finish();
      return status;
    });
  }

  WorkPtr allreduce(Tensors& tensors, const c10d::AllreduceOptions& opts = {}) override {
    constexpr Kind kind{"all_reduce", c10d::OpType::ALLREDUCE, "chorus:all_reduce"};
    auto const tensor = one(tensors, kind);
    return begin(kind, {tensor}, {tensor}, reducing(opts, tensor),
                 [tensor, op = opts.reduceOp](auto* group, auto* how, auto* error) {
                   Written x(tensor, true);
                   premultiply(x.memory(), op);
                   auto const status = chorus_all_reduce(group, nullptr, x.view(), how, error);
                   x.finish();
                   return status;
                 });
  }

  WorkPtr allreduce_coalesced(Tensors& tensors, const c10d::AllreduceCoalescedOptions& opts = {}) override {
    constexpr Kind kind{"all_reduce_coalesced", c10d::OpType::ALLREDUCE_COALESCED, "chorus:all_reduce"};
    TORCH_CHECK_VALUE(!tensors.empty(), "chorus: ", kind.name, ": no tensors");
    for (auto const& tensor : tensors) check_type(tensor, tensors.front(), kind);
    return begin(kind, tensors, tensors, reducing(opts, tensors.front()),
                 [tensors, op = opts.reduceOp](auto* group, auto* how, auto* error) {
                   std::vector<Written> written;
                   std::vector<chorus_tensor_t> views;
                   for (auto const& tensor : tensors) {
                     written.emplace_back(tensor, true);
                     premultiply(written.back().memory(), op);
                     views.push_back(*written.back().view());
                   }
                   auto const status = chorus_all_reduce_list(group, views.data(), views.size(), how, error);
                   for (auto& x : written) x.finish();
                   return status;
                 });
  }

  WorkPtr reduce(Tensors& tensors, const c10d::ReduceOptions& opts = {}) override {
    constexpr Kind kind{"reduce", c10d::OpType::REDUCE, "chorus:reduce"};
    auto const tensor = one(tensors, kind);
    auto options = reducing(opts, tensor);
    options.root = opts.rootRank;
    bool const receives = opts.rootRank == rank_;
    return begin(kind, {tensor}, {tensor}, std::move(options),
                 [tensor, receives, op = opts.reduceOp](auto* group, auto* how, auto* error) {
                   // Elsewhere than at the root the tensor stays as it is, also where it has to be multiplied.
                   bool const scaled = op.op_ == Reduction::PREMUL_SUM && !receives;
                   Written x(scaled ? plain_copy(tensor) : tensor, true);
                   premultiply(x.memory(), op);
                   auto const status = chorus_reduce(group, nullptr, x.view(), how, error);
                   if (receives) x.finish();
                   return status;
                 });
  }

  WorkPtr allgather(Lists& outputs, Tensors& inputs, const c10d::AllgatherOptions& opts = {}) override {
    constexpr Kind kind{"all_gather", c10d::OpType::ALLGATHER, "chorus:all_gather"};
    auto const input = one(inputs, kind);
    auto const& output = one_list(outputs, input, rank_, size_, kind);
    return begin(kind, {input}, output, with_blocks(with_timeout(opts), output),
                 [input, output, rank = rank_](auto* group, auto* how, auto* error) {
                   Whole whole(output);
                   Read const block(input, is_block_of(output, input, rank));
                   auto const status = chorus_all_gather(group, block.view(), whole.to_write(), how, error);
                   whole.distribute();
                   return status;
                 });
  }

  WorkPtr _allgather_base(at::Tensor& output, at::Tensor& input, const c10d::AllgatherOptions& opts = {}) override {
    constexpr Kind kind{"all_gather", c10d::OpType::_ALLGATHER_BASE, "chorus:_all_gather_base"};
    check_whole(output, input, size_, kind);
    return begin(kind, {input}, {output}, with_timeout(opts),
                 [input, output, rank = rank_](auto* group, auto* how, auto* error) {
                   Written whole(output, false);
                   Read const block(input, is_block_of(output, input, rank));
                   auto const status = chorus_all_gather(group, block.view(), whole.view(), how, error);
                   whole.finish();
                   return status;
                 });
  }

  // Each rank has a list of tensors; `outputs[r]` takes that of rank r.
  WorkPtr allgather_coalesced(Lists& outputs, Tensors& inputs, const c10d::AllgatherOptions& opts = {}) override {
    constexpr Kind kind{"all_gather_coalesced", c10d::OpType::ALLGATHER_COALESCED, "chorus:all_gather"};
    TORCH_CHECK_VALUE(!inputs.empty(), "chorus: ", kind.name, ": no tensors");
    TORCH_CHECK_VALUE(outputs.size() == static_cast<std::size_t>(size_), "chorus: ", kind.name, ": ", outputs.size(),
                      " lists of outputs, expected one for each of ", size_, " ranks");
    Tensors flat;
    for (auto const& list : outputs) {
      TORCH_CHECK_VALUE(list.size() == inputs.size(), "chorus: ", kind.name, ": a list of ", list.size(),
                        " outputs, expected ", inputs.size());
      for (std::size_t i = 0; i < list.size(); ++i) check_alike(list[i], inputs[i], kind);
      flat.insert(flat.end(), list.begin(), list.end());
    }
    return begin(kind, inputs, flat, with_timeout(opts),
                 [inputs, outputs, rank = rank_](auto* group, auto* how, auto* error) {
                   // One call for each tensor of the list: they may be of different types.
                   for (std::size_t i = 0; i < inputs.size(); ++i) {
                     Tensors output;
                     for (auto const& list : outputs) output.push_back(list[i]);
                     Whole whole(output);
                     Read const block(inputs[i], is_block_of(output, inputs[i], rank));
                     auto const status = chorus_all_gather(group, block.view(), whole.to_write(), how, error);
                     if (status != CHORUS_OK) return status;
                     whole.distribute();
                   }
                   return chorus_status_t{CHORUS_OK};
                 });
  }

  WorkPtr gather(Lists& outputs, Tensors& inputs, const c10d::GatherOptions& opts = {}) override {
    constexpr Kind kind{"gather", c10d::OpType::GATHER, "chorus:gather"};
    auto const input = one(inputs, kind);
    if (!is_root(opts.rootRank, rank_, outputs.empty(), "outputs", kind))
      return begin(kind, {input}, {}, with_root(opts), [input](auto* group, auto* how, auto* error) {
        return chorus_gather(group, Read(input).view(), nullptr, how, error);
      });
    auto const& output = one_list(outputs, input, rank_, size_, kind);
    check_equal_blocks(output, kind);
    return begin(kind, {input}, output, with_root(opts),
                 [input, output, rank = rank_](auto* group, auto* how, auto* error) {
                   Whole whole(output);
                   Read const block(input, is_block_of(output, input, rank));
                   auto const status = chorus_gather(group, block.view(), whole.to_write(), how, error);
                   whole.distribute();
                   return status;
                 });
  }

  WorkPtr scatter(Tensors& outputs, Lists& inputs, const c10d::ScatterOptions& opts = {}) override {
    constexpr Kind kind{"scatter", c10d::OpType::SCATTER, "chorus:scatter"};
    auto const output = one(outputs, kind);
    if (!is_root(opts.rootRank, rank_, inputs.empty(), "inputs", kind))
      return begin(kind, {}, {output}, with_root(opts), [output](auto* group, auto* how, auto* error) {
        Written block(output, false);
        auto const status = chorus_scatter(group, nullptr, block.view(), how, error);
        block.finish();
        return status;
      });
    auto const& input = one_list(inputs, output, rank_, size_, kind);
    check_equal_blocks(input, kind);
    return begin(kind, input, {output}, with_root(opts),
                 [input, output, rank = rank_](auto* group, auto* how, auto* error) {
                   Whole whole(input);
                   whole.collect();
                   Written block(output, false, is_block_of(input, output, rank));
                   auto const status = chorus_scatter(group, whole.to_read(), block.view(), how, error);
                   block.finish();
                   return status;
                 });
  }

  WorkPtr reduce_scatter(Tensors& outputs, Lists& inputs, const c10d::ReduceScatterOptions& opts = {}) override {
    constexpr Kind kind{"reduce_scatter", c10d::OpType::REDUCE_SCATTER, "chorus:reduce_scatter"};
    auto const output = one(outputs, kind);
    auto const& input = one_list(inputs, output, rank_, size_, kind);
    return begin(kind, input, {output}, with_blocks(reducing(opts, output), input),
                 [input, output, op = opts.reduceOp, rank = rank_](auto* group, auto* how, auto* error) {
                   Whole whole(scaled(input, op));
                   whole.collect();
                   Written block(output, false, is_block_of(input, output, rank));
                   auto const status = chorus_reduce_scatter(group, whole.to_read(), block.view(), how, error);
                   block.finish();
                   return status;
                 });
  }

  WorkPtr _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                               const c10d::ReduceScatterOptions& opts = {}) override {
    constexpr Kind kind{"reduce_scatter", c10d::OpType::_REDUCE_SCATTER_BASE, "chorus:_reduce_scatter_base"};
    check_whole(input, output, size_, kind);
    return begin(kind, {input}, {output}, reducing(opts, output),
                 [input, output, op = opts.reduceOp, rank = rank_](auto* group, auto* how, auto* error) {
                   Read const whole(scaled({input}, op).front());
                   Written block(output, false, is_block_of(input, output, rank));
                   auto const status = chorus_reduce_scatter(group, whole.view(), block.view(), how, error);
                   block.finish();
                   return status;
                 });
  }

  // Splits are rows of each rank; without them rows are divided equally.
  WorkPtr alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<std::int64_t>& output_splits,
                        std::vector<std::int64_t>& input_splits, const c10d::AllToAllOptions& opts = {}) override {
    constexpr Kind kind{"all_to_all", c10d::OpType::ALLTOALL_BASE, "chorus:all_to_all"};
    check_dense(input, kind.name);
    check_type(output, input, kind);
    auto options = with_timeout(opts);
    options.counts = counts_of_rows(input, input_splits, size_, kind);
    options.receive_counts = counts_of_rows(output, output_splits, size_, kind);
    return begin(kind, {input}, {output}, std::move(options), [input, output](auto* group, auto* how, auto* error) {
      Written received(output, false);
      auto const status = chorus_all_to_all(group, Read(input).view(), received.view(), how, error);
      received.finish();
      return status;
    });
  }

  WorkPtr alltoall(Tensors& outputs, Tensors& inputs, const c10d::AllToAllOptions& opts = {}) override {
    constexpr Kind kind{"all_to_all", c10d::OpType::ALLTOALL, "chorus:all_to_all"};
    check_list(inputs, size_, kind);
    check_list(outputs, size_, kind);
    check_type(outputs.front(), inputs.front(), kind);
    auto options = with_timeout(opts);
    options.counts = counts_of(inputs);
    options.receive_counts = counts_of(outputs);
    return begin(kind, inputs, outputs, std::move(options), [inputs, outputs](auto* group, auto* how, auto* error) {
      Whole sent(inputs), received(outputs);
      sent.collect();
      auto const status = chorus_all_to_all(group, sent.to_read(), received.to_write(), how, error);
      received.distribute();
      return status;
    });
  }

#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 1)
  WorkPtr allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                          const c10d::AllgatherOptions& opts = {}) override {
    constexpr Kind kind{"all_gather_into_tensor_coalesced", c10d::OpType::ALLGATHER_COALESCED, "chorus:all_gather"};
    check_wholes(outputs, inputs, size_, kind);
    return begin(kind, inputs, outputs, with_timeout(opts),
                 [inputs, outputs, rank = rank_](auto* group, auto* how, auto* error) {
                   for (std::size_t i = 0; i < inputs.size(); ++i) {
                     Written whole(outputs[i], false);
                     Read const block(inputs[i], is_block_of(outputs[i], inputs[i], rank));
                     auto const status = chorus_all_gather(group, block.view(), whole.view(), how, error);
                     if (status != CHORUS_OK) return status;
                     whole.finish();
                   }
                   return chorus_status_t{CHORUS_OK};
                 });
  }

  WorkPtr reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                          const c10d::ReduceScatterOptions& opts = {}) override {
    constexpr Kind kind{"reduce_scatter_tensor_coalesced", c10d::OpType::REDUCE_SCATTER, "chorus:reduce_scatter"};
    check_wholes(inputs, outputs, size_, kind);
    for (auto const& output : outputs) check_type(output, outputs.front(), kind);
    return begin(kind, inputs, outputs, reducing(opts, outputs.front()),
                 [inputs, outputs, op = opts.reduceOp, rank = rank_](auto* group, auto* how, auto* error) {
                   auto const wholes = scaled(inputs, op);
                   for (std::size_t i = 0; i < inputs.size(); ++i) {
                     Written block(outputs[i], false, is_block_of(inputs[i], outputs[i], rank));
                     auto const status = chorus_reduce_scatter(group, Read(wholes[i]).view(), block.view(), how, error);
                     if (status != CHORUS_OK) return status;
                     block.finish();
                   }
                   return chorus_status_t{CHORUS_OK};
                 });
  }
#endif

  WorkPtr barrier(const c10d::BarrierOptions& opts = {}) override {
    constexpr Kind kind{"barrier", c10d::OpType::BARRIER, "chorus:barrier"};
    return begin(kind, {}, {}, with_timeout(opts),
                 [](auto* group, auto* how, auto* error) { return chorus_barrier(group, how, error); });
  }

  void monitoredBarrier(const c10d::BarrierOptions& opts, bool wait_all_ranks = false) override {
    monitored_.pass(opts.timeout == c10d::kUnsetTimeout ? membership_->timeout() : opts.timeout, wait_all_ranks);
  }

  // Point to point.
  WorkPtr send(Tensors& tensors, int to, int tag) override {
    constexpr Kind kind{"send", c10d::OpType::SEND, "chorus:send"};
    return messages_.send(kind, rank_, one(tensors, kind), to, tag);
  }
  WorkPtr recv(Tensors& tensors, int from, int tag) override {
    constexpr Kind kind{"recv", c10d::OpType::RECV, "chorus:recv"};
    return messages_.receive(kind, rank_, one(tensors, kind), from, tag);
  }
  WorkPtr recvAnysource(Tensors& tensors, int tag) override {
    constexpr Kind kind{"recv", c10d::OpType::RECVANYSOURCE, "chorus:recvAnySource"};
    return messages_.receive(kind, rank_, one(tensors, kind), CHORUS_ANY_SOURCE, tag);
  }

  // Calls are numbered from 0 on every rank: there is nothing to agree on.
  void setSequenceNumberForGroup() override {}
  std::uint64_t getSequenceNumberForGroup() override { return membership_->number_of_calls(); }

 private:
  WorkPtr begin(Kind kind, Tensors const& inputs, Tensors outputs, CallOptions options, Body body) {
    return membership_->begin(kind, inputs, std::move(outputs), std::move(options), std::move(body));
  }

  std::unique_ptr<Membership> const membership_;
  MonitoredBarrier monitored_;
  Messages messages_;
};

}  // namespace chorus::process_group
