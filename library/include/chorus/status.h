// The version of the library, and how its functions fail.
#ifndef CHORUS_STATUS_H
#define CHORUS_STATUS_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define CHORUS_API __attribute__((visibility("default")))
#else
#define CHORUS_API
#endif

// Version of this header. chorus_version() is that of the library.
#define CHORUS_VERSION_MAJOR 0
#define CHORUS_VERSION_MINOR 2
#define CHORUS_VERSION_PATCH 0

#ifdef __cplusplus
extern "C" {
#endif

// Returns the version of the library, "0.2.0". Valid for as long as the program runs. Any thread.
CHORUS_API char const* chorus_version(void);

// Returns 1 if this build of the library has a feature, 0 if not, also for names that no release knows and for NULL.
// Any thread. Features: "shared_memory" (members of one host read each other's tensors where they lie), "tls"
// (coordinators and workers behind https URLs), "cuda" (tensors in memory of a GPU).
CHORUS_API int chorus_has_feature(char const* name);

// How a call ended. CHORUS_OK is 0; numbers keep their meaning in later versions, which may add others.
typedef int32_t chorus_status_t;
enum {
  CHORUS_OK = 0,
  CHORUS_BAD_ARGUMENT = 1,       // an argument, a size, a dtype or a name that cannot be; nothing was sent
  CHORUS_NO_COORDINATOR = 2,     // the worker has none, or could not reach one until the deadline
  CHORUS_FENCED = 3,             // a newer process has taken this worker's id
  CHORUS_NOT_ASSIGNED = 4,       // until the deadline nobody made a group of that name with this worker in it
  CHORUS_NO_NEW_EPOCH = 5,       // the group's epoch has failed or lost a member, and there was no newer one
  CHORUS_STOPPED = 6,            // the worker was stopped
  CHORUS_PEER_LOST = 7,          // a member's process has ended, or its link has closed
  CHORUS_DEADLINE_EXCEEDED = 8,  // not finished within the timeout; the text names the member that was waited for
  CHORUS_ABORTED = 9,            // an earlier call of the epoch has failed, or the worker stops
  CHORUS_PLAN_MISMATCH = 10,     // members called different things; the text shows both
  CHORUS_FORBIDDEN = 11,         // a member showed a wrong token
  CHORUS_EPOCH_FENCED = 12,      // the group went on to a new epoch, or this worker is no member any more
  CHORUS_PROTOCOL_ERROR = 13,    // a member sent what cannot be
  CHORUS_CORRUPT_FRAME = 14,     // bytes were changed between two members
  CHORUS_DEVICE_FAILED = 15,     // a GPU refused its work, or is lost
  CHORUS_OUT_OF_MEMORY = 16,     // the limit of the worker or of the system is reached
  CHORUS_NOT_SHARED = 17,        // this worker shares no memory with others
  CHORUS_BIND_FAILED = 18,       // the host and port to listen on cannot be had
  CHORUS_BAD_SECURITY = 19,      // a file of tokens or a certificate that cannot be used
  CHORUS_PENDING = 20,           // a request has not ended yet
  CHORUS_INTERNAL = 21,          // anything else; the text says what
  CHORUS_CANCELLED = 22,         // a receive was cancelled, and has taken no message
  CHORUS_NOT_CANCELLABLE = 23    // a call that has ended, or that another member may wait for; it goes on
};

// Returns the name of a status, "bad_argument"; "unknown" for other numbers. Any thread.
CHORUS_API char const* chorus_status_name(chorus_status_t status);

// What went wrong in a call: a status, one sentence, and the ranks that the sentence blames. An object of the caller's,
// for one thread at a time, used for as many calls as wanted. Functions that take one clear it when they begin. It is
// always optional: with NULL the returned status is all that is told.
typedef struct chorus_error chorus_error_t;

// Returns a new, empty error; NULL if there is no memory, which calls take as well.
CHORUS_API chorus_error_t* chorus_error_create(void);

// Frees an error. NULL is allowed.
CHORUS_API void chorus_error_free(chorus_error_t* error);

// Returns the status of the last call that took this error: CHORUS_OK if that succeeded, and for NULL.
CHORUS_API chorus_status_t chorus_error_status(chorus_error_t const* error);

// Returns one sentence in UTF-8 without a full stop, "" after success and for NULL. Valid until the next call that
// takes this error.
CHORUS_API char const* chorus_error_text(chorus_error_t const* error);

// Returns how many ranks the failure names, and sets *ranks to them, ascending; 0 where no member is to blame. `ranks`
// may be NULL. Valid until the next call that takes this error.
CHORUS_API size_t chorus_error_ranks(chorus_error_t const* error, uint32_t const** ranks);

#ifdef __cplusplus
}
#endif

#endif
