// A worker in this process: its HTTP service, its lease at the coordinator and its data plane, on two threads.
#ifndef CHORUS_WORKER_H
#define CHORUS_WORKER_H

#include <chorus/status.h>

#ifdef __cplusplus
extern "C" {
#endif

// A process may have several.
typedef struct chorus_worker chorus_worker_t;

// How a worker is started. Set `size` to sizeof(chorus_worker_options_t) and every member that is not wanted to 0: that
// is its default. Strings are copied. The members are flags of chorus-worker.
typedef struct chorus_worker_options {
  size_t size;
  char const* coordinator;  // URL, or several with commas; NULL: the worker stands alone, and joins no group
  char const* host;         // to bind; NULL: 127.0.0.1
  uint16_t port;            // 0: the system picks one
  uint16_t reserved[3];     // 0
  char const* advertise;    // HOST[:PORT] that others use; NULL: `host`, or the host's name for a wildcard
  char const* id;           // NULL: "<host name>-<port>"
  char const* region;       // where the worker stands; NULL: not told
  char const* zone;
  char const* rack;
  char const* locality_host;    // NULL: the host's name
  uint64_t tensor_limit_bytes;  // of a tensor that comes over HTTP; 0: 16 GiB
  uint64_t memory_limit_bytes;  // of all tensors and results; 0: three quarters of the machine's memory
  int32_t private_memory;       // 1: no memory is shared with other workers of the host
  int32_t insecure_no_auth;     // 1: bind where others reach the worker, without authentication
  char const* link_checksum;    // "auto", "on", "off": CRC32C of what goes over connections; NULL: "auto"
  int64_t spin_us;              // how long the idle data thread polls, microseconds; 0: 20; -1: not at all
  int64_t drain_timeout_ms;     // how long a stop waits for what others run here; 0: 5000; -1: not at all
  uint64_t connections;         // accepted at once; 0: 16384
  char const* log_level;        // to standard error: "trace", "debug", "info", "warn", "error", "off"; NULL: "warn"
  char const* auth_tokens;      // file of hashed tokens of those who may call; NULL: no authentication
  char const* token_file;       // the worker's own token
  char const* audit_log;        // file; NULL: none
  char const* tls_certificate;  // PEM file; NULL: no TLS
  char const* tls_key;          // PEM file
  char const* tls_authorities;  // PEM file
  int32_t tls_requires_client_certificate;
  uint32_t rate_limit;               // requests per second and caller; 0: none
  char const* const* allowed_hosts;  // names by which the worker is called, besides its own
  size_t allowed_hosts_length;
  char const* const* cors_origins;
  size_t cors_origins_length;
} chorus_worker_options_t;

// Starts a worker, binds its port and begins to join the coordinator; does not wait for it. *worker is to be freed by
// chorus_worker_free(), and is NULL after a failure. `options` NULL: all defaults. SIGPIPE is ignored in the process
// from then on, the limit of open descriptors raised, and SIGBUS handled, so that truncated shared memory is an error.
// Fails with CHORUS_BAD_ARGUMENT, CHORUS_BIND_FAILED, CHORUS_BAD_SECURITY. Any thread.
CHORUS_API chorus_status_t chorus_worker_start(chorus_worker_options_t const* options, chorus_worker_t** worker,
                                               chorus_error_t* error);

// Ends the calls that are under way on groups of this worker with CHORUS_ABORTED, leaves the coordinator, and ends the
// worker's threads. Waits for calls on the worker that are under way, such as chorus_worker_join(). Groups, requests
// and memory stay valid until they are freed; further calls on the worker fail with CHORUS_STOPPED, those on its groups
// with CHORUS_ABORTED. To stop again is no error. Let the members meet in chorus_barrier() first: a slower one loses a
// member otherwise. Fails with CHORUS_BAD_ARGUMENT (`worker` is NULL). Any thread.
CHORUS_API chorus_status_t chorus_worker_stop(chorus_worker_t* worker, chorus_error_t* error);

// Stops a worker and frees it. NULL is allowed. No other call on the worker is under way or follows.
CHORUS_API void chorus_worker_free(chorus_worker_t* worker);

// What a worker is called. Set `size` before the call. The strings are valid until the worker is freed.
typedef struct chorus_worker_info {
  size_t size;
  char const* id;
  char const* url;  // where the worker answers
} chorus_worker_info_t;

// Fills in *info, also after a stop. Fails with CHORUS_BAD_ARGUMENT. Any thread.
CHORUS_API chorus_status_t chorus_worker_describe(chorus_worker_t const* worker, chorus_worker_info_t* info,
                                                  chorus_error_t* error);

#ifdef __cplusplus
}
#endif

#endif
