// A group that this process is a member of, in one epoch.
#ifndef CHORUS_GROUP_H
#define CHORUS_GROUP_H

#include <chorus/worker.h>

#ifdef __cplusplus
extern "C" {
#endif

// One reference to a membership: joining the same epoch again gives another one to the same order of calls. It may
// outlive the worker, and then fails every call.
typedef struct chorus_group chorus_group_t;

// Waits until the coordinator has assigned this worker to a group of that name (PUT /v1/groups/{name}), in an epoch in
// which no call of this worker has failed and no member is lost; at most `timeout_ms` milliseconds. *group is to be
// freed by chorus_group_free(), and is NULL after a failure. After the end of an epoch this is the way into the next
// one. Fails with CHORUS_NO_COORDINATOR, CHORUS_NOT_ASSIGNED, CHORUS_NO_NEW_EPOCH, CHORUS_FENCED, CHORUS_STOPPED,
// CHORUS_BAD_ARGUMENT. Any thread.
CHORUS_API chorus_status_t chorus_worker_join(chorus_worker_t* worker, char const* name, int64_t timeout_ms,
                                              chorus_group_t** group, chorus_error_t* error);

// Frees a reference to a group. The worker stays a member until it stops. NULL is allowed. No other call on this handle
// is under way or follows; requests that it began may be, and keep what they need.
CHORUS_API void chorus_group_free(chorus_group_t* group);

// What a group is. Set `size` before the call. `name` is valid until the handle is freed.
typedef struct chorus_group_info {
  size_t size;
  char const* name;
  uint32_t rank;   // of this member, 0 to ranks - 1
  uint32_t ranks;  // number of members
  uint32_t epoch;  // from 1
  uint32_t reserved;
} chorus_group_info_t;

// Fills in *info. Fails with CHORUS_BAD_ARGUMENT. Any thread.
CHORUS_API chorus_status_t chorus_group_describe(chorus_group_t const* group, chorus_group_info_t* info,
                                                 chorus_error_t* error);

// Sets *begin and *length to the block of a rank, in elements, in a vector of so many elements, where no counts say
// otherwise. Fails with CHORUS_BAD_ARGUMENT. Any thread.
CHORUS_API chorus_status_t chorus_group_block(chorus_group_t const* group, uint32_t rank, uint64_t elements,
                                              uint64_t* begin, uint64_t* length, chorus_error_t* error);

// Sets *path to how members reach each other: "shm" where all share memory, "links" where not, "unknown" before the
// first call. Waits for the calls that were issued before. The string is valid for as long as the program runs. Fails
// with CHORUS_BAD_ARGUMENT. Any thread.
CHORUS_API chorus_status_t chorus_group_path(chorus_group_t const* group, char const** path, chorus_error_t* error);

// Writes why the path is "links" to `text`: which member has no memory to share or does not see another's; ""
// otherwise. At most `capacity` bytes with the 0 at the end; *length, which may be NULL, becomes the length of the
// whole text. Waits for the calls that were issued before. Fails with CHORUS_BAD_ARGUMENT. Any thread.
CHORUS_API chorus_status_t chorus_group_why_not_shared(chorus_group_t const* group, char* text, size_t capacity,
                                                       size_t* length, chorus_error_t* error);

#ifdef __cplusplus
}
#endif

#endif
