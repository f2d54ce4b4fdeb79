#include "worker/api/members/member_messages.hpp"

#include <array>
#include <atomic>
#include <utility>

#include "worker/api/errc.hpp"
#include "worker/api/members/call_options.hpp"

namespace chorus::embedded {

using engine::MessageRequest;
using engine::MessageResult;
using engine::MessageWay;

static_assert(any_source == engine::any_source);

namespace {

MessageRequest to_send(ConstTensorView tensor, std::uint32_t peer, MessageOptions const& options) {
  return {MessageWay::send, peer, options.tag, tensor.bytes, {}, {}, 0};
}
MessageRequest to_receive(TensorView tensor, std::uint32_t source, MessageOptions const& options) {
  return {MessageWay::receive, source, options.tag, {}, tensor.bytes, {}, 0};
}

}  // namespace

Status MemberMessages::check(std::string_view what, std::uint32_t peer, MessageOptions const& options) const {
  auto const bad = [](std::string why) { return Error(WorkerErrc::bad_argument, std::move(why)); };
  if (peer >= place_.size)
    return bad(std::string(what) + " rank " + std::to_string(peer) + " in a group of " + std::to_string(place_.size));
  if (options.tag > engine::tag_max)
    return bad("tag " + std::to_string(options.tag) + "; expected at most " + std::to_string(engine::tag_max));
  if (options.timeout.count() <= 0) return check_timeout(options.timeout);
  return end_.is_over() ? end_.standing() : ok();
}

Status MemberMessages::check_send(std::uint32_t peer, MessageOptions const& options) const {
  return check("a message to", peer, options);
}
Status MemberMessages::check_receive(std::uint32_t source, MessageOptions const& options) const {
  return check("a message from", source == any_source ? place_.rank : source, options);
}
Status MemberMessages::check_both(std::uint32_t peer, std::uint32_t source, MessageOptions const& options) const {
  auto sends = check_send(peer, options);
  return sends.has_error() ? sends : check_receive(source, options);
}

Status MemberMessages::finish_one(MessageResult const& result) {
  if (result.status.has_value()) return ok();
  if (result.was_cancelled) return Error(WorkerErrc::cancelled, result.status.error().detail);
  auto const& why = result.status.error();
  if (result.ends_the_group && !end_.is_over()) {
    end_.end_by(why, result.culprits);
    group_.fail(engine::code_of(why), why.detail);
  }
  return why;
}

Status MemberMessages::send(ConstTensorView tensor, std::uint32_t peer, MessageOptions const& options) {
  if (auto status = check_send(peer, options); status.has_error()) return status;
  auto request = to_send(tensor, peer, options);
  if (group_.run_message_at_once(request)) return ok();
  MessageResult result;
  group_.run_messages(std::span(&request, 1), limited(options.timeout), std::span(&result, 1));
  return finish_one(result);
}

Result<Received> MemberMessages::recv(TensorView tensor, std::uint32_t source, MessageOptions const& options) {
  if (auto const status = check_receive(source, options); status.has_error()) return status.error();
  auto request = to_receive(tensor, source, options);
  if (auto const bytes = group_.run_message_at_once(request)) return Received{source, *bytes};
  MessageResult result;
  group_.run_messages(std::span(&request, 1), limited(options.timeout), std::span(&result, 1));
  return finish(std::span(&result, 1));
}

Result<Received> MemberMessages::sendrecv(ConstTensorView sent, std::uint32_t peer, TensorView received,
                                          std::uint32_t source, MessageOptions const& options) {
  if (auto const status = check_both(peer, source, options); status.has_error()) return status.error();
  std::array requests{to_send(sent, peer, options), to_receive(received, source, options)};
  std::array<MessageResult, 2> results;
  group_.run_messages(requests, limited(options.timeout), results);
  return finish(results);
}

Result<Received> MemberMessages::finish(std::span<MessageResult const> results) {
  auto status = ok();
  for (auto const& result : results)
    if (auto ended = finish_one(result); ended.has_error() && status.has_value()) status = std::move(ended);
  if (status.has_error()) return status.error();
  return Received{results.back().source, results.back().bytes};
}

std::shared_ptr<PendingCall> MemberMessages::begin_send(ConstTensorView tensor, std::uint32_t peer,
                                                        MessageOptions const& options) {
  return begin(check_send(peer, options), {to_send(tensor, peer, options)}, options.timeout, nullptr).pending;
}

std::shared_ptr<PendingCall> MemberMessages::begin_recv(TensorView tensor, std::uint32_t source,
                                                        MessageOptions const& options, Received* received,
                                                        std::weak_ptr<void const> owner) {
  auto [pending, number] =
      begin(check_receive(source, options), {to_receive(tensor, source, options)}, options.timeout, received);
  if (number != 0)
    pending->let_cancel([owner = std::move(owner), this, receive = number] {
      auto const here = owner.lock();
      return here != nullptr && group_.cancel_receive(receive);
    });
  return pending;
}

std::shared_ptr<PendingCall> MemberMessages::begin_sendrecv(ConstTensorView sent, std::uint32_t peer, TensorView into,
                                                            std::uint32_t source, MessageOptions const& options,
                                                            Received* received) {
  return begin(check_both(peer, source, options), {to_send(sent, peer, options), to_receive(into, source, options)},
               options.timeout, received)
      .pending;
}

MemberMessages::Begun MemberMessages::begin(Status const& checked, std::vector<MessageRequest> const& requests,
                                            std::chrono::milliseconds timeout, Received* received) {
  auto pending = std::make_shared<PendingCall>();
  if (checked.has_error()) {
    pending->end(checked);
    return {std::move(pending)};
  }
  {
    std::lock_guard const lock(mutex_);
    ++begun_;
  }
  struct Ended {
    std::vector<MessageResult> results;
    std::atomic<std::size_t> left;
  };
  auto const ended = std::make_shared<Ended>(std::vector<MessageResult>(requests.size()), requests.size());
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < requests.size(); ++i)
    number =
        group_.begin_message(requests[i], limited(timeout), [this, pending, ended, i, received](MessageResult result) {
          ended->results[i] = std::move(result);
          if (--ended->left != 0) return;
          auto const got = finish(ended->results);
          if (got.has_value() && received != nullptr) *received = *got;
          pending->end(got.has_value() ? ok() : Status(got.error()));
          std::lock_guard const lock(mutex_);
          --begun_;
          changed_.notify_all();
        });
  return {std::move(pending), number};
}

void MemberMessages::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return begun_ == 0; });
}

}  // namespace chorus::embedded
