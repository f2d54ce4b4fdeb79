// A coordinator of the program's own, for programs that find each other by other means: one of them starts it, and
// tells the others its URL.
#ifndef CHORUS_COORDINATOR_H
#define CHORUS_COORDINATOR_H

#include <chorus/status.h>

#ifdef __cplusplus
extern "C" {
#endif

// A chorus-coordinator in a process of its own. It ends with chorus_coordinator_free(), and with the program, however
// that ends.
typedef struct chorus_coordinator chorus_coordinator_t;

// How a coordinator is started. Set `size` to sizeof(chorus_coordinator_options_t) and every member that is not wanted
// to 0: that is its default. Strings are copied.
typedef struct chorus_coordinator_options {
  size_t size;
  char const* program;           // path of chorus-coordinator; NULL: in the folder CHORUS_BIN, else beside the library
                                 // or in ../bin from there, else on PATH
  char const* host;              // to listen on; NULL: 127.0.0.1
  uint16_t port;                 // 0: the system picks one
  uint16_t reserved[3];          // 0
  char const* const* arguments;  // further ones of the program, "--journal", "journal.db"
  size_t arguments_length;
} chorus_coordinator_options_t;

// Starts a coordinator, and returns when it listens, within `timeout_ms` milliseconds. `options` NULL: all defaults.
// Its log goes to standard error: errors only, unless `arguments` say otherwise. *coordinator is to be freed by
// chorus_coordinator_free(), and is NULL after a failure. Fails with CHORUS_NO_COORDINATOR (the program was not found,
// has ended, or did not listen in time), CHORUS_BAD_ARGUMENT. Any thread.
CHORUS_API chorus_status_t chorus_start_coordinator(chorus_coordinator_options_t const* options, int64_t timeout_ms,
                                                    chorus_coordinator_t** coordinator, chorus_error_t* error);

// Returns the URL for the option `coordinator` of workers; "" for NULL. Valid until the coordinator is freed. Any
// thread.
CHORUS_API char const* chorus_coordinator_url(chorus_coordinator_t const* coordinator);

// Ends a coordinator by SIGTERM, waits for its end, and frees it; after 10 s it is killed. NULL is allowed. No other
// call on the coordinator is under way or follows.
CHORUS_API void chorus_coordinator_free(chorus_coordinator_t* coordinator);

#ifdef __cplusplus
}
#endif

#endif
