// The collectives: every call blocks until it has ended on this member. chorus/request.h has the forms that do not.
//
// Calls of all members are matched by their order: the n-th call of each is one collective, whether it blocks or not.
// Calls of one membership run one after the other, in the order in which they were issued, from any thread. Every
// member passes the same operation, dtype, options and form (in place or not), except for the timeout, and for the
// counts of all-to-all.
//
// CHORUS_BAD_ARGUMENT: nothing was sent, and the call has no place in the order; a corrected one fits. Any other
// failure ends the epoch: every later call says why, and chorus_worker_join() gives the next epoch. What a failed call
// was to write to is unspecified. Until a call has ended, no other thread writes or frees its memory, nor reads what
// the call writes to.
//
// Each function fails with CHORUS_BAD_ARGUMENT, CHORUS_PLAN_MISMATCH, CHORUS_DEADLINE_EXCEEDED, CHORUS_PEER_LOST,
// CHORUS_EPOCH_FENCED, CHORUS_ABORTED, CHORUS_PROTOCOL_ERROR, CHORUS_CORRUPT_FRAME, CHORUS_FORBIDDEN. Any thread.
#ifndef CHORUS_COLLECTIVES_H
#define CHORUS_COLLECTIVES_H

#include <chorus/group.h>

#ifdef __cplusplus
extern "C" {
#endif

// Types of elements. f16 and bf16 are bits that are reduced in f32.
typedef int32_t chorus_dtype_t;
enum {
  CHORUS_F64 = 0,
  CHORUS_F32 = 1,
  CHORUS_F16 = 2,
  CHORUS_BF16 = 3,
  CHORUS_I64 = 4,
  CHORUS_I32 = 5,
  CHORUS_I16 = 6,
  CHORUS_I8 = 7,
  CHORUS_U64 = 8,
  CHORUS_U32 = 9,
  CHORUS_U16 = 10,
  CHORUS_U8 = 11
};

// How two elements become one. CHORUS_AVG sums and divides once; the last three are bitwise, of integers.
typedef int32_t chorus_reduce_t;
enum {
  CHORUS_SUM = 0,
  CHORUS_AVG = 1,
  CHORUS_MIN = 2,
  CHORUS_MAX = 3,
  CHORUS_PROD = 4,
  CHORUS_BAND = 5,
  CHORUS_BOR = 6,
  CHORUS_BXOR = 7
};

// Memory that a call writes to, and may read. `elements` counts elements, not bytes; with 0 of them `data` may be NULL.
typedef struct chorus_tensor {
  void* data;
  uint64_t elements;
  chorus_dtype_t dtype;
  uint32_t reserved;  // 0: memory of this process
} chorus_tensor_t;

// Memory that a call only reads.
typedef struct chorus_const_tensor {
  void const* data;
  uint64_t elements;
  chorus_dtype_t dtype;
  uint32_t reserved;  // 0: memory of this process
} chorus_const_tensor_t;

// Options of a call. Set `size` to sizeof(chorus_collective_options_t) and every member that is not wanted to 0: that
// is its default. NULL in place of the struct: all defaults. Lists are copied.
typedef struct chorus_collective_options {
  size_t size;
  chorus_reduce_t reduce;           // of all_reduce, reduce, reduce_scatter; 0: CHORUS_SUM
  uint32_t root;                    // of reduce, broadcast, gather, scatter
  char const* algorithm;            // a name out of docs/reference/algorithms.md; NULL: the group's choice
  uint32_t arity;                   // of an algorithm that was named and takes one; 0: its default
  uint32_t reserved;                // 0
  uint32_t const* algorithm_shape;  // likewise
  size_t algorithm_shape_length;
  uint64_t const* counts;  // elements per rank's block, one for each rank; NULL: blocks as equal as can be
  size_t counts_length;
  uint64_t const* receive_counts;  // of all_to_all with counts: elements from each rank
  size_t receive_counts_length;
  int64_t timeout_ms;  // milliseconds from when the call begins, which is when those before it have ended; 0: 30 s
  // bf16, f16, int8, fp8_e4m3: sends codes of the elements, which lose precision; of all_reduce, reduce,
  // reduce_scatter, all_gather, broadcast of floats. auto: the fastest of `allow`, or elements where these are faster.
  // NULL: none. The same on all members.
  char const* compression;
  // host, rack, zone, region: with a compression of all_reduce, only messages between two of them are codes. NULL: all.
  char const* between;
  // With compression of one tensor, a name: what the codes lack of this member's contribution is kept under it, a float
  // for each element while the group's epoch lasts, and is added to the next contribution of that name and size.
  // Members may differ. NULL: nothing is kept.
  char const* error_feedback;
  // With the compression auto: formats, as in "bf16,int8". NULL: bf16 alone.
  char const* allow;
} chorus_collective_options_t;

// Reduces the tensors of all members, element by element, to every member. `input` and `output` have the same size and
// dtype. In place, with `input` NULL: `output` is input and output.
CHORUS_API chorus_status_t chorus_all_reduce(chorus_group_t* group, chorus_const_tensor_t const* input,
                                             chorus_tensor_t const* output, chorus_collective_options_t const* options,
                                             chorus_error_t* error);

// The same, but only to the root. The others may pass NULL for `output`; in place their tensors stay as they are.
CHORUS_API chorus_status_t chorus_reduce(chorus_group_t* group, chorus_const_tensor_t const* input,
                                         chorus_tensor_t const* output, chorus_collective_options_t const* options,
                                         chorus_error_t* error);

// Copies the root's tensor to the tensors of all members, of the same size.
CHORUS_API chorus_status_t chorus_broadcast(chorus_group_t* group, chorus_tensor_t const* tensor,
                                            chorus_collective_options_t const* options, chorus_error_t* error);

// Collects the blocks of all members, in rank order, at every member. `input` is this member's block, `output` the
// whole. In place, with `input` NULL: `output` is the whole, and holds this member's block where it belongs.
CHORUS_API chorus_status_t chorus_all_gather(chorus_group_t* group, chorus_const_tensor_t const* input,
                                             chorus_tensor_t const* output, chorus_collective_options_t const* options,
                                             chorus_error_t* error);

// Reduces the tensors of all members, and leaves to each its own block. `input` is the whole, `output` this member's
// block. In place, with `input` NULL: `output` is the whole; the block is left where it belongs, the rest is
// unspecified.
CHORUS_API chorus_status_t chorus_reduce_scatter(chorus_group_t* group, chorus_const_tensor_t const* input,
                                                 chorus_tensor_t const* output,
                                                 chorus_collective_options_t const* options, chorus_error_t* error);

// Collects the blocks of all members, in rank order, at the root. `input` is this member's block, `output` the whole,
// which the others leave NULL. Without counts all blocks are of one size.
CHORUS_API chorus_status_t chorus_gather(chorus_group_t* group, chorus_const_tensor_t const* input,
                                         chorus_tensor_t const* output, chorus_collective_options_t const* options,
                                         chorus_error_t* error);

// Sends each member its block of the root's tensor. `input` is the whole, which the others leave NULL, `output` this
// member's block. Without counts all blocks are of one size.
CHORUS_API chorus_status_t chorus_scatter(chorus_group_t* group, chorus_const_tensor_t const* input,
                                          chorus_tensor_t const* output, chorus_collective_options_t const* options,
                                          chorus_error_t* error);

// Sends block d of the input to rank d, and gets block s of the output from rank s. With counts and receive_counts
// blocks are of any size. In place, with `input` NULL: `output` is input and output, of equal blocks.
CHORUS_API chorus_status_t chorus_all_to_all(chorus_group_t* group, chorus_const_tensor_t const* input,
                                             chorus_tensor_t const* output, chorus_collective_options_t const* options,
                                             chorus_error_t* error);

// Returns when every member has called it. No options but timeout and algorithm count.
CHORUS_API chorus_status_t chorus_barrier(chorus_group_t* group, chorus_collective_options_t const* options,
                                          chorus_error_t* error);

// Reduces many tensors in place, of any sizes and dtypes, the same list on every member: several times as fast as a
// call for each. `tensors` points to `count` of them, which do not overlap (CHORUS_BAD_ARGUMENT); counts of the options
// are not allowed. After a failure some may have their results and others not.
CHORUS_API chorus_status_t chorus_all_reduce_list(chorus_group_t* group, chorus_tensor_t const* tensors, size_t count,
                                                  chorus_collective_options_t const* options, chorus_error_t* error);

// The same, only to the root.
CHORUS_API chorus_status_t chorus_reduce_list(chorus_group_t* group, chorus_tensor_t const* tensors, size_t count,
                                              chorus_collective_options_t const* options, chorus_error_t* error);

// Copies many tensors from the root, the same list of sizes and dtypes on every member. A tensor may be listed twice.
CHORUS_API chorus_status_t chorus_broadcast_list(chorus_group_t* group, chorus_tensor_t const* tensors, size_t count,
                                                 chorus_collective_options_t const* options, chorus_error_t* error);

// Collects the blocks of many tensors: outputs[i] is as from chorus_all_gather() with inputs[i] alone, and small
// tensors share a call. In place, with `inputs` NULL: each of `outputs` is as in that call. Both point to `count`
// tensors, of any sizes and dtypes, the same on every member; blocks are as equal as can be, and counts of the options
// are not allowed. No output overlaps another tensor (CHORUS_BAD_ARGUMENT). After a failure some may have their results
// and others not.
CHORUS_API chorus_status_t chorus_all_gather_list(chorus_group_t* group, chorus_const_tensor_t const* inputs,
                                                  chorus_tensor_t const* outputs, size_t count,
                                                  chorus_collective_options_t const* options, chorus_error_t* error);

// Reduces many tensors, and leaves to each member its own block of each: chorus_reduce_scatter() of a list.
CHORUS_API chorus_status_t chorus_reduce_scatter_list(chorus_group_t* group, chorus_const_tensor_t const* inputs,
                                                      chorus_tensor_t const* outputs, size_t count,
                                                      chorus_collective_options_t const* options,
                                                      chorus_error_t* error);

// Exchanges the blocks of many tensors: chorus_all_to_all() of a list.
CHORUS_API chorus_status_t chorus_all_to_all_list(chorus_group_t* group, chorus_const_tensor_t const* inputs,
                                                  chorus_tensor_t const* outputs, size_t count,
                                                  chorus_collective_options_t const* options, chorus_error_t* error);

#ifdef __cplusplus
}
#endif

#endif
