#include <chorus/message.h>

#include "library/operations.hpp"

using namespace chorus::library;

namespace {

using chorus::Error;
using chorus::Result;
using chorus::Status;
using chorus::WorkerErrc;

// What C hands over for a message, checked. A send receives nothing, a receive sends nothing.
struct Message {
  chorus::ConstTensorView sent;
  chorus::TensorView into;
  std::uint32_t source = 0;
  chorus::MessageOptions options;
};

Result<Message> to_send(chorus_const_tensor_t const* tensor, char const* name,
                        chorus_message_options_t const* options) {
  Message message;
  if (tensor == nullptr) return Error(WorkerErrc::bad_argument, std::string(name) + " is NULL");
  auto const view = to_view(tensor, name);
  if (view.has_error()) return view.error();
  message.sent = *view;
  auto const how = to_options(options);
  if (how.has_error()) return how.error();
  message.options = *how;
  return message;
}

Status add_receive(Message& message, chorus_tensor_t const* tensor, char const* name, std::int64_t source) {
  if (tensor == nullptr) return Error(WorkerErrc::bad_argument, std::string(name) + " is NULL");
  auto const view = to_view(tensor, name);
  if (view.has_error()) return view.error();
  message.into = *view;
  auto const rank = to_source(source);
  if (rank.has_error()) return rank.error();
  message.source = *rank;
  return chorus::ok();
}

Result<Message> to_receive(chorus_tensor_t const* tensor, std::int64_t source,
                           chorus_message_options_t const* options) {
  Message message;
  auto const how = to_options(options);
  if (how.has_error()) return how.error();
  message.options = *how;
  if (auto const status = add_receive(message, tensor, "tensor", source); status.has_error()) return status.error();
  return message;
}

Result<Message> to_both(chorus_const_tensor_t const* sent, chorus_tensor_t const* into, std::int64_t source,
                        chorus_message_options_t const* options) {
  auto message = to_send(sent, "sent", options);
  if (message.has_error()) return message.error();
  if (auto const status = add_receive(*message, into, "into", source); status.has_error()) return status.error();
  return *message;
}

// A call that blocks: `run` returns a Status.
template <class Run>
chorus_status_t run(chorus_group_t* group, chorus_error_t* error, Result<Message> const& message, Run const& run) {
  if (group == nullptr) return bad_argument(error, "group is NULL");
  if (message.has_error()) return tell(error, message.error());
  return tell_end(error, group->group, run(group->group, *message));
}

// The end of a receive as a Status, once *received was written.
Status ended(Result<chorus::Received> const& got, chorus_received_t* received) {
  if (got.has_error()) return got.error();
  if (received != nullptr) *received = to_received(*got);
  return chorus::ok();
}

// A call that returns at once: `begin` returns a Handle.
template <class Begin>
chorus_status_t begin(chorus_group_t* group, chorus_received_t* received, chorus_request_t** request,
                      chorus_error_t* error, Result<Message> const& message, Begin const& begin) {
  if (request == nullptr) return bad_argument(error, "request is NULL: there is nowhere to put the new one");
  *request = nullptr;
  if (group == nullptr) return bad_argument(error, "group is NULL");
  if (message.has_error()) return tell(error, message.error());
  auto got = std::make_unique<chorus::Received>();
  auto handle = begin(group->group, *message, got.get());
  *request = new chorus_request{group->group, std::move(got), received, std::move(handle)};
  return CHORUS_OK;
}

}  // namespace

chorus_status_t chorus_send(chorus_group_t* group, chorus_const_tensor_t const* tensor, uint32_t peer,
                            chorus_message_options_t const* options, chorus_error_t* error) {
  return guarded(error, [&] {
    return run(group, error, to_send(tensor, "tensor", options),
               [&](auto& joined, auto const& message) { return joined.send(message.sent, peer, message.options); });
  });
}

chorus_status_t chorus_recv(chorus_group_t* group, chorus_tensor_t const* tensor, int64_t source,
                            chorus_message_options_t const* options, chorus_received_t* received,
                            chorus_error_t* error) {
  return guarded(error, [&] {
    return run(group, error, to_receive(tensor, source, options), [&](auto& joined, auto const& message) {
      return ended(joined.recv(message.into, message.source, message.options), received);
    });
  });
}

chorus_status_t chorus_sendrecv(chorus_group_t* group, chorus_const_tensor_t const* sent, uint32_t peer,
                                chorus_tensor_t const* into, int64_t source, chorus_message_options_t const* options,
                                chorus_received_t* received, chorus_error_t* error) {
  return guarded(error, [&] {
    return run(group, error, to_both(sent, into, source, options), [&](auto& joined, auto const& message) {
      return ended(joined.sendrecv(message.sent, peer, message.into, message.source, message.options), received);
    });
  });
}

chorus_status_t chorus_send_async(chorus_group_t* group, chorus_const_tensor_t const* tensor, uint32_t peer,
                                  chorus_message_options_t const* options, chorus_request_t** request,
                                  chorus_error_t* error) {
  return guarded(error, [&] {
    return begin(group, nullptr, request, error, to_send(tensor, "tensor", options),
                 [&](auto& joined, auto const& message, chorus::Received*) {
                   return joined.send_async(message.sent, peer, message.options);
                 });
  });
}

chorus_status_t chorus_recv_async(chorus_group_t* group, chorus_tensor_t const* tensor, int64_t source,
                                  chorus_message_options_t const* options, chorus_received_t* received,
                                  chorus_request_t** request, chorus_error_t* error) {
  return guarded(error, [&] {
    return begin(group, received, request, error, to_receive(tensor, source, options),
                 [&](auto& joined, auto const& message, chorus::Received* got) {
                   return joined.recv_async(message.into, message.source, message.options, got);
                 });
  });
}

chorus_status_t chorus_sendrecv_async(chorus_group_t* group, chorus_const_tensor_t const* sent, uint32_t peer,
                                      chorus_tensor_t const* into, int64_t source,
                                      chorus_message_options_t const* options, chorus_received_t* received,
                                      chorus_request_t** request, chorus_error_t* error) {
  return guarded(error, [&] {
    return begin(group, received, request, error, to_both(sent, into, source, options),
                 [&](auto& joined, auto const& message, chorus::Received* got) {
                   return joined.sendrecv_async(message.sent, peer, message.into, message.source, message.options, got);
                 });
  });
}
