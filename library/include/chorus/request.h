// Collectives that return at once.
#ifndef CHORUS_REQUEST_H
#define CHORUS_REQUEST_H

#include <chorus/collectives.h>

#ifdef __cplusplus
extern "C" {
#endif

// A call that was begun. For one thread at a time, but for chorus_request_cancel(); it may outlive the handle of its
// group, and the worker. It ends at its timeout at the latest, and with CHORUS_ABORTED when its worker stops.
typedef struct chorus_request chorus_request_t;

// Returns CHORUS_PENDING if the call has not ended, otherwise how it ended. Never waits. Also fails with
// CHORUS_BAD_ARGUMENT (`request` is NULL).
CHORUS_API chorus_status_t chorus_request_test(chorus_request_t const* request, chorus_error_t* error);

// Waits for the end of the call, and returns how it ended; as often as wanted.
CHORUS_API chorus_status_t chorus_request_wait(chorus_request_t const* request, chorus_error_t* error);

// The same for at most `timeout_ms` milliseconds: CHORUS_PENDING if the call has not ended by then. That ends nothing.
CHORUS_API chorus_status_t chorus_request_wait_for(chorus_request_t const* request, int64_t timeout_ms,
                                                   chorus_error_t* error);

// Waits until one of `count` requests has ended, at most `timeout_ms` milliseconds; sets *index to the first in the
// list that has, and returns how it ended. CHORUS_PENDING if none has. They may be of several groups; none is NULL.
CHORUS_API chorus_status_t chorus_request_wait_any(chorus_request_t* const* requests, size_t count, int64_t timeout_ms,
                                                   size_t* index, chorus_error_t* error);

// Cancels a receive, of chorus_recv_async(), that no message has met: the request ends with CHORUS_CANCELLED before
// this returns, its memory is the caller's again, and a message that arrives later goes to the next receive. Also
// CHORUS_OK if it was cancelled before. CHORUS_NOT_CANCELLABLE, and the call goes on: it has ended, or the receive has
// met its message, or it is no receive. A send may have been received already. A collective is never cancelled, whether
// it has begun or waits for its turn: the other members count on this member's call of it. Any thread, also while
// another one waits for the request, until that one frees it. Also fails with CHORUS_BAD_ARGUMENT (`request` is NULL).
CHORUS_API chorus_status_t chorus_request_cancel(chorus_request_t const* request, chorus_error_t* error);

// Waits for the end of the call, and frees the request: until then the call uses the memory that was handed to it. NULL
// is allowed.
CHORUS_API void chorus_request_free(chorus_request_t* request);

// Begins chorus_all_reduce(), and each function below the call that it is named after. *request is to be freed by
// chorus_request_free(), and is NULL after a failure. Sizes are looked at in the call's turn: what is wrong with them
// is told when the request is waited for. Lists of tensors are copied, what they refer to is not. Any thread.
CHORUS_API chorus_status_t chorus_all_reduce_async(chorus_group_t* group, chorus_const_tensor_t const* input,
                                                   chorus_tensor_t const* output,
                                                   chorus_collective_options_t const* options,
                                                   chorus_request_t** request, chorus_error_t* error);

// Begins chorus_reduce().
CHORUS_API chorus_status_t chorus_reduce_async(chorus_group_t* group, chorus_const_tensor_t const* input,
                                               chorus_tensor_t const* output,
                                               chorus_collective_options_t const* options, chorus_request_t** request,
                                               chorus_error_t* error);

// Begins chorus_broadcast().
CHORUS_API chorus_status_t chorus_broadcast_async(chorus_group_t* group, chorus_tensor_t const* tensor,
                                                  chorus_collective_options_t const* options,
                                                  chorus_request_t** request, chorus_error_t* error);

// Begins chorus_all_gather().
CHORUS_API chorus_status_t chorus_all_gather_async(chorus_group_t* group, chorus_const_tensor_t const* input,
                                                   chorus_tensor_t const* output,
                                                   chorus_collective_options_t const* options,
                                                   chorus_request_t** request, chorus_error_t* error);

// Begins chorus_reduce_scatter().
CHORUS_API chorus_status_t chorus_reduce_scatter_async(chorus_group_t* group, chorus_const_tensor_t const* input,
                                                       chorus_tensor_t const* output,
                                                       chorus_collective_options_t const* options,
                                                       chorus_request_t** request, chorus_error_t* error);

// Begins chorus_gather().
CHORUS_API chorus_status_t chorus_gather_async(chorus_group_t* group, chorus_const_tensor_t const* input,
                                               chorus_tensor_t const* output,
                                               chorus_collective_options_t const* options, chorus_request_t** request,
                                               chorus_error_t* error);

// Begins chorus_scatter().
CHORUS_API chorus_status_t chorus_scatter_async(chorus_group_t* group, chorus_const_tensor_t const* input,
                                                chorus_tensor_t const* output,
                                                chorus_collective_options_t const* options, chorus_request_t** request,
                                                chorus_error_t* error);

// Begins chorus_all_to_all().
CHORUS_API chorus_status_t chorus_all_to_all_async(chorus_group_t* group, chorus_const_tensor_t const* input,
                                                   chorus_tensor_t const* output,
                                                   chorus_collective_options_t const* options,
                                                   chorus_request_t** request, chorus_error_t* error);

// Begins chorus_barrier().
CHORUS_API chorus_status_t chorus_barrier_async(chorus_group_t* group, chorus_collective_options_t const* options,
                                                chorus_request_t** request, chorus_error_t* error);

// Begins chorus_all_reduce_list().
CHORUS_API chorus_status_t chorus_all_reduce_list_async(chorus_group_t* group, chorus_tensor_t const* tensors,
                                                        size_t count, chorus_collective_options_t const* options,
                                                        chorus_request_t** request, chorus_error_t* error);

// Begins chorus_reduce_list().
CHORUS_API chorus_status_t chorus_reduce_list_async(chorus_group_t* group, chorus_tensor_t const* tensors, size_t count,
                                                    chorus_collective_options_t const* options,
                                                    chorus_request_t** request, chorus_error_t* error);

// Begins chorus_broadcast_list().
CHORUS_API chorus_status_t chorus_broadcast_list_async(chorus_group_t* group, chorus_tensor_t const* tensors,
                                                       size_t count, chorus_collective_options_t const* options,
                                                       chorus_request_t** request, chorus_error_t* error);

// Begins chorus_all_gather_list().
CHORUS_API chorus_status_t chorus_all_gather_list_async(chorus_group_t* group, chorus_const_tensor_t const* inputs,
                                                        chorus_tensor_t const* outputs, size_t count,
                                                        chorus_collective_options_t const* options,
                                                        chorus_request_t** request, chorus_error_t* error);

// Begins chorus_reduce_scatter_list().
CHORUS_API chorus_status_t chorus_reduce_scatter_list_async(chorus_group_t* group, chorus_const_tensor_t const* inputs,
                                                            chorus_tensor_t const* outputs, size_t count,
                                                            chorus_collective_options_t const* options,
                                                            chorus_request_t** request, chorus_error_t* error);

// Begins chorus_all_to_all_list().
CHORUS_API chorus_status_t chorus_all_to_all_list_async(chorus_group_t* group, chorus_const_tensor_t const* inputs,
                                                        chorus_tensor_t const* outputs, size_t count,
                                                        chorus_collective_options_t const* options,
                                                        chorus_request_t** request, chorus_error_t* error);

#ifdef __cplusplus
}
#endif

#endif
