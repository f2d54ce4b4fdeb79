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

// The members of a group that a program makes. Set `size` to sizeof(chorus_group_options_t) and every member that is
// not wanted to 0. Strings are copied.
typedef struct chorus_group_options {
  size_t size;
  char const* const* workers;  // ids, each once, the id of this worker among them; NULL: any workers
  size_t workers_length;
  char const* order;  // "listed": rank r is the r-th of `workers`; "locality", "measured"; NULL: "listed" with
                      // `workers`, "locality" without
  uint32_t ranks;     // without `workers`: so many ready workers, those that stand closest together
  uint32_t reserved;  // 0
} chorus_group_options_t;

// Makes a group at the coordinator, and joins it, within `timeout_ms` milliseconds. With `workers` every member calls
// it, with the same options: the first one listed asks the coordinator, once all have joined that, and the others wait
// for the group. Without, one worker calls it, and the others chorus_worker_join(). A group of this name in which a
// call has failed gets its next epoch. *group is to be freed by chorus_group_free(), and is NULL after a failure. Fails
// with CHORUS_BAD_ARGUMENT (members or an order that cannot be, or this worker is a member of that group already),
// CHORUS_NOT_ASSIGNED (a member is unknown or does not answer until the deadline, or the first one listed has not
// called), CHORUS_NO_COORDINATOR, CHORUS_NO_NEW_EPOCH, CHORUS_FORBIDDEN, CHORUS_FENCED, CHORUS_STOPPED. Any thread.
CHORUS_API chorus_status_t chorus_worker_create_group(chorus_worker_t* worker, char const* name,
                                                      chorus_group_options_t const* options, int64_t timeout_ms,
                                                      chorus_group_t** group, chorus_error_t* error);

// Makes a group of some members of a group, within `timeout_ms` milliseconds: rank ranks[r] of `group` has rank r in
// *subgroup. Exactly these `count` members call it, with the same list. Several subgroups of one list are several
// groups; chorus_group_describe() tells the name of one. The call has nothing to do with the order of collectives.
// *subgroup is to be freed by chorus_group_free(), and is NULL after a failure. Fails with CHORUS_BAD_ARGUMENT (a rank
// that the group does not have, one twice, or not the caller's) and as chorus_worker_create_group(). Any thread.
CHORUS_API chorus_status_t chorus_group_subgroup(chorus_group_t* group, uint32_t const* ranks, size_t count,
                                                 int64_t timeout_ms, chorus_group_t** subgroup, chorus_error_t* error);

// Deletes a group at the coordinator, within `timeout_ms` milliseconds: one member calls it, after all have met in
// chorus_barrier(). Returns when the other members have been told: their calls end with CHORUS_EPOCH_FENCED. Each
// worker frees what it holds of the group with the last handle. A group that is not there is no error. Fails with
// CHORUS_BAD_ARGUMENT, CHORUS_NO_COORDINATOR, CHORUS_FORBIDDEN, CHORUS_FENCED, CHORUS_STOPPED. Any thread.
CHORUS_API chorus_status_t chorus_worker_delete_group(chorus_worker_t* worker, char const* name, int64_t timeout_ms,
                                                      chorus_error_t* error);

// Frees a reference to a group. The worker stays a member until it stops, or the group is deleted. NULL is allowed. No
// other call on this handle is under way or follows; requests that it began may be, and keep what they need.
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
