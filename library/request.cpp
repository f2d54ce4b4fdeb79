#include <algorithm>
#include <vector>

#include "library/operations.hpp"

using namespace chorus::library;

namespace {

template <class Operation>
chorus_status_t begin(chorus_group_t* group, chorus_const_tensor_t const* input, chorus_tensor_t const* output,
                      chorus_collective_options_t const* options, chorus_request_t** request, chorus_error_t* error) {
  return guarded(error, [&]() -> chorus_status_t {
    if (request == nullptr) return bad_argument(error, "request is NULL: there is nowhere to put the new one");
    *request = nullptr;
    if (group == nullptr) return bad_argument(error, "group is NULL");
    auto arguments = to_arguments(Operation::form, input, output, options);
    if (arguments.has_error()) return tell(error, arguments.error());
    auto handle = Operation::begin(group->group, std::move(*arguments));
    *request = new chorus_request{group->group, nullptr, nullptr, std::move(handle)};
    return CHORUS_OK;
  });
}

// `to_list` makes the Lists.
template <class Operation, class ToLists>
chorus_status_t begin_list(chorus_group_t* group, chorus_request_t** request, chorus_error_t* error, ToLists to_list) {
  return guarded(error, [&]() -> chorus_status_t {
    if (request == nullptr) return bad_argument(error, "request is NULL: there is nowhere to put the new one");
    *request = nullptr;
    if (group == nullptr) return bad_argument(error, "group is NULL");
    auto lists = to_list();
    if (lists.has_error()) return tell(error, lists.error());
    auto handle = Operation::begin(group->group, std::move(*lists));
    *request = new chorus_request{group->group, nullptr, nullptr, std::move(handle)};
    return CHORUS_OK;
  });
}

chorus_status_t pending(chorus_error_t* error) { return tell(error, CHORUS_PENDING, {}); }

chorus_status_t tell_end(chorus_error_t* error, chorus_request_t const& request, chorus::Status const& status) {
  if (status.has_value() && request.received != nullptr) *request.received = to_received(*request.got);
  return chorus::library::tell_end(error, request.group, status);
}

}  // namespace

chorus_status_t chorus_request_test(chorus_request_t const* request, chorus_error_t* error) {
  return guarded(error, [&]() -> chorus_status_t {
    if (request == nullptr) return bad_argument(error, "request is NULL");
    if (!request->handle.is_done()) return pending(error);
    return tell_end(error, *request, request->handle.wait());
  });
}

chorus_status_t chorus_request_wait(chorus_request_t const* request, chorus_error_t* error) {
  return guarded(error, [&]() -> chorus_status_t {
    if (request == nullptr) return bad_argument(error, "request is NULL");
    return tell_end(error, *request, request->handle.wait());
  });
}

chorus_status_t chorus_request_wait_for(chorus_request_t const* request, int64_t timeout_ms, chorus_error_t* error) {
  return guarded(error, [&]() -> chorus_status_t {
    if (request == nullptr) return bad_argument(error, "request is NULL");
    auto const deadline = to_deadline(timeout_ms);
    if (deadline.has_error()) return tell(error, deadline.error());
    auto const ended = request->handle.wait_until(*deadline);
    return ended ? tell_end(error, *request, *ended) : pending(error);
  });
}

chorus_status_t chorus_request_wait_any(chorus_request_t* const* requests, size_t count, int64_t timeout_ms,
                                        size_t* index, chorus_error_t* error) {
  return guarded(error, [&]() -> chorus_status_t {
    if (requests == nullptr || count == 0) return bad_argument(error, "there are no requests to wait for");
    if (index == nullptr) return bad_argument(error, "index is NULL");
    auto const deadline = to_deadline(timeout_ms);
    if (deadline.has_error()) return tell(error, deadline.error());
    std::vector<chorus::Handle const*> handles;
    for (size_t i = 0; i < count; ++i) {
      if (requests[i] == nullptr) return bad_argument(error, "request " + std::to_string(i) + " is NULL");
      handles.push_back(&requests[i]->handle);
    }
    auto const first = chorus::wait_any(handles, *deadline);
    if (!first) return pending(error);
    *index = *first;
    return tell_end(error, *requests[*first], handles[*first]->wait());
  });
}

chorus_status_t chorus_request_cancel(chorus_request_t const* request, chorus_error_t* error) {
  return guarded(error, [&]() -> chorus_status_t {
    if (request == nullptr) return bad_argument(error, "request is NULL");
    auto const cancelled = request->handle.cancel();
    return cancelled.has_value() ? CHORUS_OK : tell(error, cancelled.error());
  });
}

void chorus_request_free(chorus_request_t* request) { delete request; }

chorus_status_t chorus_all_reduce_async(chorus_group_t* group, chorus_const_tensor_t const* input,
                                        chorus_tensor_t const* output, chorus_collective_options_t const* options,
                                        chorus_request_t** request, chorus_error_t* error) {
  return begin<AllReduce>(group, input, output, options, request, error);
}

chorus_status_t chorus_reduce_async(chorus_group_t* group, chorus_const_tensor_t const* input,
                                    chorus_tensor_t const* output, chorus_collective_options_t const* options,
                                    chorus_request_t** request, chorus_error_t* error) {
  return begin<Reduce>(group, input, output, options, request, error);
}

chorus_status_t chorus_broadcast_async(chorus_group_t* group, chorus_tensor_t const* tensor,
                                       chorus_collective_options_t const* options, chorus_request_t** request,
                                       chorus_error_t* error) {
  return begin<Broadcast>(group, nullptr, tensor, options, request, error);
}

chorus_status_t chorus_all_gather_async(chorus_group_t* group, chorus_const_tensor_t const* input,
                                        chorus_tensor_t const* output, chorus_collective_options_t const* options,
                                        chorus_request_t** request, chorus_error_t* error) {
  return begin<AllGather>(group, input, output, options, request, error);
}

chorus_status_t chorus_reduce_scatter_async(chorus_group_t* group, chorus_const_tensor_t const* input,
                                            chorus_tensor_t const* output, chorus_collective_options_t const* options,
                                            chorus_request_t** request, chorus_error_t* error) {
  return begin<ReduceScatter>(group, input, output, options, request, error);
}

chorus_status_t chorus_gather_async(chorus_group_t* group, chorus_const_tensor_t const* input,
                                    chorus_tensor_t const* output, chorus_collective_options_t const* options,
                                    chorus_request_t** request, chorus_error_t* error) {
  return begin<Gather>(group, input, output, options, request, error);
}

chorus_status_t chorus_scatter_async(chorus_group_t* group, chorus_const_tensor_t const* input,
                                     chorus_tensor_t const* output, chorus_collective_options_t const* options,
                                     chorus_request_t** request, chorus_error_t* error) {
  return begin<Scatter>(group, input, output, options, request, error);
}

chorus_status_t chorus_all_to_all_async(chorus_group_t* group, chorus_const_tensor_t const* input,
                                        chorus_tensor_t const* output, chorus_collective_options_t const* options,
                                        chorus_request_t** request, chorus_error_t* error) {
  return begin<AllToAll>(group, input, output, options, request, error);
}

chorus_status_t chorus_barrier_async(chorus_group_t* group, chorus_collective_options_t const* options,
                                     chorus_request_t** request, chorus_error_t* error) {
  return begin<Barrier>(group, nullptr, nullptr, options, request, error);
}

chorus_status_t chorus_all_reduce_list_async(chorus_group_t* group, chorus_tensor_t const* tensors, size_t count,
                                             chorus_collective_options_t const* options, chorus_request_t** request,
                                             chorus_error_t* error) {
  return begin_list<AllReduceList>(group, request, error, [&] { return to_lists(tensors, count, options); });
}

chorus_status_t chorus_reduce_list_async(chorus_group_t* group, chorus_tensor_t const* tensors, size_t count,
                                         chorus_collective_options_t const* options, chorus_request_t** request,
                                         chorus_error_t* error) {
  return begin_list<ReduceList>(group, request, error, [&] { return to_lists(tensors, count, options); });
}

chorus_status_t chorus_broadcast_list_async(chorus_group_t* group, chorus_tensor_t const* tensors, size_t count,
                                            chorus_collective_options_t const* options, chorus_request_t** request,
                                            chorus_error_t* error) {
  return begin_list<Broadcast>(group, request, error, [&] { return to_lists(tensors, count, options); });
}

chorus_status_t chorus_all_gather_list_async(chorus_group_t* group, chorus_const_tensor_t const* inputs,
                                             chorus_tensor_t const* outputs, size_t count,
                                             chorus_collective_options_t const* options, chorus_request_t** request,
                                             chorus_error_t* error) {
  return begin_list<AllGather>(group, request, error, [&] { return to_lists(inputs, outputs, count, options); });
}

chorus_status_t chorus_reduce_scatter_list_async(chorus_group_t* group, chorus_const_tensor_t const* inputs,
                                                 chorus_tensor_t const* outputs, size_t count,
                                                 chorus_collective_options_t const* options, chorus_request_t** request,
                                                 chorus_error_t* error) {
  return begin_list<ReduceScatter>(group, request, error, [&] { return to_lists(inputs, outputs, count, options); });
}

chorus_status_t chorus_all_to_all_list_async(chorus_group_t* group, chorus_const_tensor_t const* inputs,
                                             chorus_tensor_t const* outputs, size_t count,
                                             chorus_collective_options_t const* options, chorus_request_t** request,
                                             chorus_error_t* error) {
  return begin_list<AllToAll>(group, request, error, [&] { return to_lists(inputs, outputs, count, options); });
}
