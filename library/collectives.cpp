#include "library/operations.hpp"

using namespace chorus::library;

namespace {

template <class Operation>
chorus_status_t run(chorus_group_t* group, chorus_const_tensor_t const* input, chorus_tensor_t const* output,
                    chorus_collective_options_t const* options, chorus_error_t* error) {
  return guarded(error, [&]() -> chorus_status_t {
    if (group == nullptr) return bad_argument(error, "group is NULL");
    auto const arguments = to_arguments(Operation::form, input, output, options);
    if (arguments.has_error()) return tell(error, arguments.error());
    return tell_end(error, group->group, Operation::run(group->group, *arguments));
  });
}

template <class Operation>
chorus_status_t run_list(chorus_group_t* group, chorus::Result<Lists> const& lists, chorus_error_t* error) {
  if (group == nullptr) return bad_argument(error, "group is NULL");
  if (lists.has_error()) return tell(error, lists.error());
  return tell_end(error, group->group, Operation::run(group->group, *lists));
}

template <class Operation>
chorus_status_t run_list(chorus_group_t* group, chorus_tensor_t const* tensors, size_t count,
                         chorus_collective_options_t const* options, chorus_error_t* error) {
  return guarded(error, [&] { return run_list<Operation>(group, to_lists(tensors, count, options), error); });
}

template <class Operation>
chorus_status_t run_list(chorus_group_t* group, chorus_const_tensor_t const* inputs, chorus_tensor_t const* outputs,
                         size_t count, chorus_collective_options_t const* options, chorus_error_t* error) {
  return guarded(error, [&] { return run_list<Operation>(group, to_lists(inputs, outputs, count, options), error); });
}

}  // namespace

chorus_status_t chorus_all_reduce(chorus_group_t* group, chorus_const_tensor_t const* input,
                                  chorus_tensor_t const* output, chorus_collective_options_t const* options,
                                  chorus_error_t* error) {
  return run<AllReduce>(group, input, output, options, error);
}

chorus_status_t chorus_reduce(chorus_group_t* group, chorus_const_tensor_t const* input, chorus_tensor_t const* output,
                              chorus_collective_options_t const* options, chorus_error_t* error) {
  return run<Reduce>(group, input, output, options, error);
}

chorus_status_t chorus_broadcast(chorus_group_t* group, chorus_tensor_t const* tensor,
                                 chorus_collective_options_t const* options, chorus_error_t* error) {
  return run<Broadcast>(group, nullptr, tensor, options, error);
}

chorus_status_t chorus_all_gather(chorus_group_t* group, chorus_const_tensor_t const* input,
                                  chorus_tensor_t const* output, chorus_collective_options_t const* options,
                                  chorus_error_t* error) {
  return run<AllGather>(group, input, output, options, error);
}

chorus_status_t chorus_reduce_scatter(chorus_group_t* group, chorus_const_tensor_t const* input,
                                      chorus_tensor_t const* output, chorus_collective_options_t const* options,
                                      chorus_error_t* error) {
  return run<ReduceScatter>(group, input, output, options, error);
}

chorus_status_t chorus_gather(chorus_group_t* group, chorus_const_tensor_t const* input, chorus_tensor_t const* output,
                              chorus_collective_options_t const* options, chorus_error_t* error) {
  return run<Gather>(group, input, output, options, error);
}

chorus_status_t chorus_scatter(chorus_group_t* group, chorus_const_tensor_t const* input, chorus_tensor_t const* output,
                               chorus_collective_options_t const* options, chorus_error_t* error) {
  return run<Scatter>(group, input, output, options, error);
}

chorus_status_t chorus_all_to_all(chorus_group_t* group, chorus_const_tensor_t const* input,
                                  chorus_tensor_t const* output, chorus_collective_options_t const* options,
                                  chorus_error_t* error) {
  return run<AllToAll>(group, input, output, options, error);
}

chorus_status_t chorus_barrier(chorus_group_t* group, chorus_collective_options_t const* options,
                               chorus_error_t* error) {
  return run<Barrier>(group, nullptr, nullptr, options, error);
}

chorus_status_t chorus_all_reduce_list(chorus_group_t* group, chorus_tensor_t const* tensors, size_t count,
                                       chorus_collective_options_t const* options, chorus_error_t* error) {
  return run_list<AllReduceList>(group, tensors, count, options, error);
}

chorus_status_t chorus_reduce_list(chorus_group_t* group, chorus_tensor_t const* tensors, size_t count,
                                   chorus_collective_options_t const* options, chorus_error_t* error) {
  return run_list<ReduceList>(group, tensors, count, options, error);
}

chorus_status_t chorus_broadcast_list(chorus_group_t* group, chorus_tensor_t const* tensors, size_t count,
                                      chorus_collective_options_t const* options, chorus_error_t* error) {
  return run_list<Broadcast>(group, tensors, count, options, error);
}

chorus_status_t chorus_all_gather_list(chorus_group_t* group, chorus_const_tensor_t const* inputs,
                                       chorus_tensor_t const* outputs, size_t count,
                                       chorus_collective_options_t const* options, chorus_error_t* error) {
  return run_list<AllGather>(group, inputs, outputs, count, options, error);
}

chorus_status_t chorus_reduce_scatter_list(chorus_group_t* group, chorus_const_tensor_t const* inputs,
                                           chorus_tensor_t const* outputs, size_t count,
                                           chorus_collective_options_t const* options, chorus_error_t* error) {
  return run_list<ReduceScatter>(group, inputs, outputs, count, options, error);
}

chorus_status_t chorus_all_to_all_list(chorus_group_t* group, chorus_const_tensor_t const* inputs,
                                       chorus_tensor_t const* outputs, size_t count,
                                       chorus_collective_options_t const* options, chorus_error_t* error) {
  return run_list<AllToAll>(group, inputs, outputs, count, options, error);
}
