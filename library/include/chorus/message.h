// Messages between two members of a group, beside the collectives and in no order with them: any number may be under
// way at a time, in any threads.
//
// A receive takes the first message of its source and tag in the order in which they were sent; of several receives
// that fit, a message goes to the one that was called first. A message is bytes: dtypes need not agree, and it may be
// shorter than the tensor that receives it. Peers and sources may be the calling member itself.
//
// A send ends when its tensor may change: a message of up to about 256 KiB may wait at the receiver for its receive, a
// larger one is sent when its receive has been called. Members that both send before they receive, and one that sends
// itself more than that, use chorus_sendrecv() or the forms that return at once.
//
// CHORUS_BAD_ARGUMENT: nothing was sent. CHORUS_DEADLINE_EXCEEDED of a receive that no message has met: it has no
// effect. Any other failure ends the epoch on both members, as that of a collective does: CHORUS_PLAN_MISMATCH if the
// message is larger than the tensor, into which nothing is written then; CHORUS_ABORTED if more messages of one sender
// wait at a receiver than it keeps (1024, and 32 MiB).
//
// Each function fails with CHORUS_BAD_ARGUMENT, CHORUS_PLAN_MISMATCH, CHORUS_DEADLINE_EXCEEDED, CHORUS_PEER_LOST,
// CHORUS_EPOCH_FENCED, CHORUS_ABORTED, CHORUS_PROTOCOL_ERROR, CHORUS_CORRUPT_FRAME, CHORUS_FORBIDDEN. Any thread.
#ifndef CHORUS_MESSAGE_H
#define CHORUS_MESSAGE_H

#include <chorus/request.h>

#ifdef __cplusplus
extern "C" {
#endif

// A source that stands for all members: the receive takes the message of its tag that has arrived first.
enum { CHORUS_ANY_SOURCE = -1 };

// Options of a message. Set `size` to sizeof(chorus_message_options_t) and every member that is not wanted to 0: that
// is its default. NULL in place of the struct: all defaults.
typedef struct chorus_message_options {
  size_t size;
  uint32_t tag;        // 0 to 2147483647
  uint32_t reserved;   // 0
  int64_t timeout_ms;  // milliseconds from the call on; 0: 30 s
} chorus_message_options_t;

// What a receive has got.
typedef struct chorus_received {
  uint64_t bytes;   // size of the message
  uint32_t source;  // rank of its sender
  uint32_t reserved;
} chorus_received_t;

// Sends a tensor to the member of rank `peer`.
CHORUS_API chorus_status_t chorus_send(chorus_group_t* group, chorus_const_tensor_t const* tensor, uint32_t peer,
                                       chorus_message_options_t const* options, chorus_error_t* error);

// Receives a message of the member of rank `source`, or of any one with CHORUS_ANY_SOURCE, at the beginning of
// `tensor`. `received`, which may be NULL, tells what has come.
CHORUS_API chorus_status_t chorus_recv(chorus_group_t* group, chorus_tensor_t const* tensor, int64_t source,
                                       chorus_message_options_t const* options, chorus_received_t* received,
                                       chorus_error_t* error);

// Sends `sent` to `peer` and receives into `into` from `source` at the same time, with the same tag.
CHORUS_API chorus_status_t chorus_sendrecv(chorus_group_t* group, chorus_const_tensor_t const* sent, uint32_t peer,
                                           chorus_tensor_t const* into, int64_t source,
                                           chorus_message_options_t const* options, chorus_received_t* received,
                                           chorus_error_t* error);

// Begins chorus_send(), and each function below the call that it is named after. *request is to be freed by
// chorus_request_free(), and is NULL after a failure. The function that reports the good end of a request writes
// *received.
CHORUS_API chorus_status_t chorus_send_async(chorus_group_t* group, chorus_const_tensor_t const* tensor, uint32_t peer,
                                             chorus_message_options_t const* options, chorus_request_t** request,
                                             chorus_error_t* error);

// Begins chorus_recv().
CHORUS_API chorus_status_t chorus_recv_async(chorus_group_t* group, chorus_tensor_t const* tensor, int64_t source,
                                             chorus_message_options_t const* options, chorus_received_t* received,
                                             chorus_request_t** request, chorus_error_t* error);

// Begins chorus_sendrecv().
CHORUS_API chorus_status_t chorus_sendrecv_async(chorus_group_t* group, chorus_const_tensor_t const* sent,
                                                 uint32_t peer, chorus_tensor_t const* into, int64_t source,
                                                 chorus_message_options_t const* options, chorus_received_t* received,
                                                 chorus_request_t** request, chorus_error_t* error);

#ifdef __cplusplus
}
#endif

#endif
