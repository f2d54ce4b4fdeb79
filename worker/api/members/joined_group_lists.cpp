// Calls of JoinedGroup with lists of tensors.
#include <utility>

#include "worker/api/joined_group.hpp"
#include "worker/api/members/member.hpp"

namespace chorus {
namespace {

embedded::BlockLists inside(std::span<TensorView const> tensors) {
  return {{}, {tensors.begin(), tensors.end()}, true};
}

embedded::BlockLists beside(std::span<ConstTensorView const> inputs, std::span<TensorView const> outputs) {
  return {{inputs.begin(), inputs.end()}, {outputs.begin(), outputs.end()}, false};
}

}  // namespace

Status JoinedGroup::all_reduce(std::span<TensorView const> tensors, Options const& options) {
  return member_->call(Op::all_reduce, tensors, options);
}
Handle JoinedGroup::all_reduce_async(std::span<TensorView const> tensors, Options options) {
  return Handle(member_->begin(Op::all_reduce, tensors, std::move(options)));
}

Status JoinedGroup::reduce(std::span<TensorView const> tensors, Options const& options) {
  return member_->call(Op::reduce, tensors, options);
}
Handle JoinedGroup::reduce_async(std::span<TensorView const> tensors, Options options) {
  return Handle(member_->begin(Op::reduce, tensors, std::move(options)));
}

Status JoinedGroup::broadcast(std::span<TensorView const> tensors, Options const& options) {
  return member_->call(Op::broadcast, tensors, options);
}
Handle JoinedGroup::broadcast_async(std::span<TensorView const> tensors, Options options) {
  return Handle(member_->begin(Op::broadcast, tensors, std::move(options)));
}

Status JoinedGroup::all_gather(std::span<TensorView const> tensors, Options const& options) {
  return member_->call(Op::all_gather, inside(tensors), options);
}
Status JoinedGroup::all_gather(std::span<ConstTensorView const> inputs, std::span<TensorView const> outputs,
                               Options const& options) {
  return member_->call(Op::all_gather, beside(inputs, outputs), options);
}
Handle JoinedGroup::all_gather_async(std::span<TensorView const> tensors, Options options) {
  return Handle(member_->begin(Op::all_gather, inside(tensors), std::move(options)));
}
Handle JoinedGroup::all_gather_async(std::span<ConstTensorView const> inputs, std::span<TensorView const> outputs,
                                     Options options) {
  return Handle(member_->begin(Op::all_gather, beside(inputs, outputs), std::move(options)));
}

Status JoinedGroup::reduce_scatter(std::span<TensorView const> tensors, Options const& options) {
  return member_->call(Op::reduce_scatter, inside(tensors), options);
}
Status JoinedGroup::reduce_scatter(std::span<ConstTensorView const> inputs, std::span<TensorView const> outputs,
                                   Options const& options) {
  return member_->call(Op::reduce_scatter, beside(inputs, outputs), options);
}
Handle JoinedGroup::reduce_scatter_async(std::span<TensorView const> tensors, Options options) {
  return Handle(member_->begin(Op::reduce_scatter, inside(tensors), std::move(options)));
}
Handle JoinedGroup::reduce_scatter_async(std::span<ConstTensorView const> inputs, std::span<TensorView const> outputs,
                                         Options options) {
  return Handle(member_->begin(Op::reduce_scatter, beside(inputs, outputs), std::move(options)));
}

Status JoinedGroup::all_to_all(std::span<TensorView const> tensors, Options const& options) {
  return member_->call(Op::all_to_all, inside(tensors), options);
}
Status JoinedGroup::all_to_all(std::span<ConstTensorView const> inputs, std::span<TensorView const> outputs,
                               Options const& options) {
  return member_->call(Op::all_to_all, beside(inputs, outputs), options);
}
Handle JoinedGroup::all_to_all_async(std::span<TensorView const> tensors, Options options) {
  return Handle(member_->begin(Op::all_to_all, inside(tensors), std::move(options)));
}
Handle JoinedGroup::all_to_all_async(std::span<ConstTensorView const> inputs, std::span<TensorView const> outputs,
                                     Options options) {
  return Handle(member_->begin(Op::all_to_all, beside(inputs, outputs), std::move(options)));
}

}  // namespace chorus
