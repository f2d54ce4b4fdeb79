// The messages of a member: see JoinedGroup.
#include <algorithm>
#include <array>
#include <atomic>
#include <utility>
#include <vector>

#include "worker/api/errc.hpp"
#include "worker/api/members/member.hpp"

namespace chorus::embedded {

using engine::MessageRequest;
using engine::MessageResult;
using engine::MessageWay;

static_assert(any_source == engine::any_source);

Status Member::check_message(std::string_view what, std::uint32_t peer, MessageOptions const& options) const {
  auto const bad = [](std::string why) { return Error(WorkerErrc::bad_argument, std::move(why)); };
  if (peer >= place_.size)
    return bad(std::string(what) + " rank " + std::to_string(peer) + " in a group of " + std::to_string(place_.size));
  if (options.tag > engine::tag_max)
    return bad("tag " + std::to_string(options.tag) + "; expected at most " + std::to_string(engine::tag_max));
  if (auto status = check_timeout(options.timeout); status.has_error()) return status;
  return standing();
}

Result<MessageRequest> Member::to_send(ConstTensorView tensor, std::uint32_t peer,
                                       MessageOptions const& options) const {
  if (auto const status = check_message("a message to", peer, options); status.has_error()) return status.error();
  return MessageRequest{MessageWay::send, peer, options.tag, tensor.bytes, {}, {}, 0};
}

Result<MessageRequest> Member::to_receive(TensorView tensor, std::uint32_t source,
                                          MessageOptions const& options) const {
  auto const checked = source == any_source ? place_.rank : source;
  if (auto const status = check_message("a message from", checked, options); status.has_error()) return status.error();
  return MessageRequest{MessageWay::receive, source, options.tag, {}, tensor.bytes, {}, 0};
}

Status Member::finish_message(MessageResult const& result) {
  if (result.status.has_value()) return ok();
  if (result.was_cancelled) return Error(WorkerErrc::cancelled, result.status.error().detail);
  auto const& why = result.status.error();
  if (result.ends_the_group && !is_over()) {
    end_by(why, result.culprits);
    group_.interrupt(engine::code_of(why), why.detail);
  }
  return why;
}

namespace {

Result<std::vector<MessageRequest>> both(Result<MessageRequest> const& send, Result<MessageRequest> const& receive) {
  if (send.has_error()) return send.error();
  if (receive.has_error()) return receive.error();
  return std::vector{*send, *receive};
}

Result<std::vector<MessageRequest>> one(Result<MessageRequest> const& request) {
  if (request.has_error()) return request.error();
  return std::vector{*request};
}

}  // namespace

Status Member::send(ConstTensorView tensor, std::uint32_t peer, MessageOptions const& options) {
  auto request = to_send(tensor, peer, options);
  if (request.has_error()) return request.error();
  MessageResult result;
  group_.run_messages(std::span(&*request, 1), limited(options.timeout), std::span(&result, 1));
  return finish_message(result);
}

Result<Received> Member::recv(TensorView tensor, std::uint32_t source, MessageOptions const& options) {
  auto request = to_receive(tensor, source, options);
  if (request.has_error()) return request.error();
  MessageResult result;
  group_.run_messages(std::span(&*request, 1), limited(options.timeout), std::span(&result, 1));
  return finish_messages(std::span(&result, 1));
}

Result<Received> Member::sendrecv(ConstTensorView sent, std::uint32_t peer, TensorView received, std::uint32_t source,
                                  MessageOptions const& options) {
  auto requests = both(to_send(sent, peer, options), to_receive(received, source, options));
  if (requests.has_error()) return requests.error();
  std::array<MessageResult, 2> results;
  group_.run_messages(*requests, limited(options.timeout), results);
  return finish_messages(results);
}

Result<Received> Member::finish_messages(std::span<MessageResult const> results) {
  auto status = ok();
  for (auto const& result : results)
    if (auto ended = finish_message(result); ended.has_error() && status.has_value()) status = std::move(ended);
  if (status.has_error()) return status.error();
  return Received{results.back().source, results.back().bytes};
}

std::shared_ptr<PendingCall> Member::begin_send(ConstTensorView tensor, std::uint32_t peer,
                                                MessageOptions const& options) {
  return begin_messages(one(to_send(tensor, peer, options)), options.timeout, nullptr);
}

std::shared_ptr<PendingCall> Member::begin_recv(TensorView tensor, std::uint32_t source, MessageOptions const& options,
                                                Received* received) {
  return begin_messages(one(to_receive(tensor, source, options)), options.timeout, received);
}

std::shared_ptr<PendingCall> Member::begin_sendrecv(ConstTensorView sent, std::uint32_t peer, TensorView into,
                                                    std::uint32_t source, MessageOptions const& options,
                                                    Received* received) {
  return begin_messages(both(to_send(sent, peer, options), to_receive(into, source, options)), options.timeout,
                        received);
}

std::shared_ptr<PendingCall> Member::begin_messages(Result<std::vector<MessageRequest>> const& requests,
                                                    std::chrono::milliseconds timeout, Received* received) {
  auto pending = std::make_shared<PendingCall>();
  if (requests.has_error()) {
    pending->end(requests.error());
    return pending;
  }
  {
    std::lock_guard const lock(messaging_);
    ++messages_begun_;
  }
  struct Ended {
    std::vector<MessageResult> results;
    std::atomic<std::size_t> left;
  };
  auto const ended = std::make_shared<Ended>(std::vector<MessageResult>(requests->size()), requests->size());
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < requests->size(); ++i)
    number = group_.begin_message((*requests)[i], limited(timeout),
                                  [this, pending, ended, i, received](MessageResult result) {
                                    ended->results[i] = std::move(result);
                                    if (--ended->left != 0) return;
                                    auto const got = finish_messages(ended->results);
                                    if (got.has_value() && received != nullptr) *received = *got;
                                    pending->end(got.has_value() ? ok() : Status(got.error()));
                                    std::lock_guard const lock(messaging_);
                                    --messages_begun_;
                                    message_ended_.notify_all();
                                  });
  bool const is_receive = requests->size() == 1 && requests->front().way == MessageWay::receive;
  if (is_receive)
    pending->let_cancel([member = weak_from_this(), number] {
      auto const here = member.lock();
      return here != nullptr && here->group_.cancel_receive(number);
    });
  return pending;
}

}  // namespace chorus::embedded
