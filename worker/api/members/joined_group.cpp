#include "worker/api/joined_group.hpp"

#include <deque>

#include "collectives/plan/sizes/layout.hpp"
#include "worker/api/members/member.hpp"

namespace chorus {
namespace {

constexpr bool in_place = true;

bool is_same(ConstTensorView input, TensorView output) {
  // Of nothing every rank has to say the same, wherever it lies.
  return !input.bytes.empty() && input.bytes.data() == output.bytes.data() &&
         input.bytes.size() == output.bytes.size() && input.dtype == output.dtype;
}

embedded::BlockLists inside(std::span<TensorView const> tensors) {
  return {{}, {tensors.begin(), tensors.end()}, true};
}

embedded::BlockLists beside(std::span<ConstTensorView const> inputs, std::span<TensorView const> outputs) {
  return {{inputs.begin(), inputs.end()}, {outputs.begin(), outputs.end()}, false};
}

}  // namespace

Handle::Handle(std::shared_ptr<embedded::PendingCall> call) : call_(std::move(call)) {}
Handle::~Handle() {
  if (call_) static_cast<void>(call_->wait());
}
Handle::Handle(Handle&&) noexcept = default;
Handle& Handle::operator=(Handle&& other) noexcept {
  if (this == &other) return *this;
  if (call_) static_cast<void>(call_->wait());
  call_ = std::move(other.call_);
  return *this;
}
bool Handle::is_done() const { return call_->is_done(); }
Status Handle::wait() const { return call_->wait(); }
Status Handle::cancel() const { return call_->cancel(); }
std::optional<Status> Handle::wait_until(TimePoint deadline) const { return call_->wait_until(deadline); }

std::optional<std::size_t> wait_any(std::span<Handle const* const> handles, Handle::TimePoint deadline) {
  embedded::AnyCallEnded any;
  std::deque<embedded::Watch> watches;  // which do not move
  for (auto const* const handle : handles) watches.emplace_back(*handle->call_, any);
  if (!handles.empty()) any.wait_until(deadline);
  for (std::size_t i = 0; i < handles.size(); ++i)
    if (handles[i]->is_done()) return i;
  return std::nullopt;
}

JoinedGroup::JoinedGroup(std::shared_ptr<embedded::Member> member) : member_(std::move(member)) {}

std::string const& JoinedGroup::name() const { return member_->name(); }
std::uint32_t JoinedGroup::rank() const { return member_->place().rank; }
std::uint32_t JoinedGroup::size() const { return member_->place().size; }
std::uint32_t JoinedGroup::epoch() const { return member_->epoch(); }
std::string JoinedGroup::path() const { return member_->path(); }
std::string JoinedGroup::why_not_shared() const { return member_->why_not_shared(); }
std::vector<std::uint32_t> JoinedGroup::culprits() const { return member_->end().culprits(); }

Result<JoinedGroup> JoinedGroup::subgroup(std::vector<std::uint32_t> const& ranks,
                                          std::chrono::steady_clock::time_point deadline) const {
  auto member = member_->subgroup(ranks, deadline);
  if (member.has_error()) return member.error();
  return JoinedGroup(std::move(*member));
}

JoinedGroup::Block JoinedGroup::block(std::uint32_t rank, std::uint64_t elements) const {
  auto const range = plan::Layout(elements, size()).range(rank % size());
  return {range.begin, range.size()};
}

Status JoinedGroup::all_reduce(ConstTensorView input, TensorView output, Options const& options) {
  if (is_same(input, output)) return all_reduce(output, options);
  return member_->call(Op::all_reduce, input, output, !in_place, options);
}
Handle JoinedGroup::all_reduce_async(ConstTensorView input, TensorView output, Options options) {
  if (is_same(input, output)) return all_reduce_async(output, std::move(options));
  return Handle(member_->begin(Op::all_reduce, input, output, !in_place, std::move(options)));
}

Status JoinedGroup::all_reduce(TensorView tensor, Options const& options) {
  return member_->call(Op::all_reduce, {}, tensor, in_place, options);
}
Handle JoinedGroup::all_reduce_async(TensorView tensor, Options options) {
  return Handle(member_->begin(Op::all_reduce, {}, tensor, in_place, std::move(options)));
}

Status JoinedGroup::reduce(TensorView tensor, Options const& options) {
  return member_->call(Op::reduce, {}, tensor, in_place, options);
}
Handle JoinedGroup::reduce_async(TensorView tensor, Options options) {
  return Handle(member_->begin(Op::reduce, {}, tensor, in_place, std::move(options)));
}
Status JoinedGroup::reduce(ConstTensorView input, TensorView output, Options const& options) {
  return member_->call(Op::reduce, input, output, !in_place, options);
}
Handle JoinedGroup::reduce_async(ConstTensorView input, TensorView output, Options options) {
  return Handle(member_->begin(Op::reduce, input, output, !in_place, std::move(options)));
}

Status JoinedGroup::broadcast(TensorView tensor, Options const& options) {
  return member_->call(Op::broadcast, {}, tensor, in_place, options);
}
Handle JoinedGroup::broadcast_async(TensorView tensor, Options options) {
  return Handle(member_->begin(Op::broadcast, {}, tensor, in_place, std::move(options)));
}

Status JoinedGroup::all_gather(TensorView tensor, Options const& options) {
  return member_->call(Op::all_gather, {}, tensor, in_place, options);
}
Handle JoinedGroup::all_gather_async(TensorView tensor, Options options) {
  return Handle(member_->begin(Op::all_gather, {}, tensor, in_place, std::move(options)));
}
Status JoinedGroup::all_gather(ConstTensorView own, TensorView whole, Options const& options) {
  return member_->call(Op::all_gather, own, whole, !in_place, options);
}
Handle JoinedGroup::all_gather_async(ConstTensorView own, TensorView whole, Options options) {
  return Handle(member_->begin(Op::all_gather, own, whole, !in_place, std::move(options)));
}

Status JoinedGroup::reduce_scatter(TensorView tensor, Options const& options) {
  return member_->call(Op::reduce_scatter, {}, tensor, in_place, options);
}
Handle JoinedGroup::reduce_scatter_async(TensorView tensor, Options options) {
  return Handle(member_->begin(Op::reduce_scatter, {}, tensor, in_place, std::move(options)));
}
Status JoinedGroup::reduce_scatter(ConstTensorView whole, TensorView own, Options const& options) {
  return member_->call(Op::reduce_scatter, whole, own, !in_place, options);
}
Handle JoinedGroup::reduce_scatter_async(ConstTensorView whole, TensorView own, Options options) {
  return Handle(member_->begin(Op::reduce_scatter, whole, own, !in_place, std::move(options)));
}

Status JoinedGroup::gather(ConstTensorView own, TensorView whole, Options const& options) {
  return member_->call(Op::gather, own, whole, !in_place, options);
}
Handle JoinedGroup::gather_async(ConstTensorView own, TensorView whole, Options options) {
  return Handle(member_->begin(Op::gather, own, whole, !in_place, std::move(options)));
}

Status JoinedGroup::scatter(ConstTensorView whole, TensorView own, Options const& options) {
  return member_->call(Op::scatter, whole, own, !in_place, options);
}
Handle JoinedGroup::scatter_async(ConstTensorView whole, TensorView own, Options options) {
  return Handle(member_->begin(Op::scatter, whole, own, !in_place, std::move(options)));
}

Status JoinedGroup::all_to_all(TensorView tensor, Options const& options) {
  return member_->call(Op::all_to_all, {}, tensor, in_place, options);
}
Handle JoinedGroup::all_to_all_async(TensorView tensor, Options options) {
  return Handle(member_->begin(Op::all_to_all, {}, tensor, in_place, std::move(options)));
}
Status JoinedGroup::all_to_all(ConstTensorView input, TensorView output, Options const& options) {
  return member_->call(Op::all_to_all, input, output, !in_place, options);
}
Handle JoinedGroup::all_to_all_async(ConstTensorView input, TensorView output, Options options) {
  return Handle(member_->begin(Op::all_to_all, input, output, !in_place, std::move(options)));
}

Status JoinedGroup::barrier(Options const& options) { return member_->call(Op::barrier, {}, {}, !in_place, options); }
Handle JoinedGroup::barrier_async(Options options) {
  return Handle(member_->begin(Op::barrier, {}, {}, !in_place, std::move(options)));
}

Status JoinedGroup::send(ConstTensorView tensor, std::uint32_t peer, MessageOptions const& options) {
  return member_->messages().send(tensor, peer, options);
}
Result<Received> JoinedGroup::recv(TensorView tensor, std::uint32_t source, MessageOptions const& options) {
  return member_->messages().recv(tensor, source, options);
}
Result<Received> JoinedGroup::sendrecv(ConstTensorView sent, std::uint32_t peer, TensorView into, std::uint32_t source,
                                       MessageOptions const& options) {
  return member_->messages().sendrecv(sent, peer, into, source, options);
}
Handle JoinedGroup::send_async(ConstTensorView tensor, std::uint32_t peer, MessageOptions const& options) {
  return Handle(member_->messages().begin_send(tensor, peer, options));
}
Handle JoinedGroup::recv_async(TensorView tensor, std::uint32_t source, MessageOptions const& options,
                               Received* received) {
  return Handle(member_->messages().begin_recv(tensor, source, options, received, member_));
}
Handle JoinedGroup::sendrecv_async(ConstTensorView sent, std::uint32_t peer, TensorView into, std::uint32_t source,
                                   MessageOptions const& options, Received* received) {
  return Handle(member_->messages().begin_sendrecv(sent, peer, into, source, options, received));
}

// Lists of tensors.

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
