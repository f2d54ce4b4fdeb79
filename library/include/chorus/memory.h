// Memory that the other workers of the host see: calls use it without a copy. Any other memory works as well, and is
// copied once on its way.
#ifndef CHORUS_MEMORY_H
#define CHORUS_MEMORY_H

#include <chorus/worker.h>

#ifdef __cplusplus
extern "C" {
#endif

// Memory of a worker, allocated or registered. It may outlive the worker.
typedef struct chorus_memory chorus_memory_t;

// Allocates bytes, not initialized, aligned to 64, counted in memory_limit_bytes. Where no memory is shared it is
// ordinary memory. *memory is to be freed by chorus_memory_free(), and is NULL after a failure. Fails with
// CHORUS_OUT_OF_MEMORY, CHORUS_STOPPED, CHORUS_BAD_ARGUMENT. Any thread.
CHORUS_API chorus_status_t chorus_memory_allocate(chorus_worker_t* worker, size_t bytes, chorus_memory_t** memory,
                                                  chorus_error_t* error);

// Registers memory that the program has: addresses and contents stay. `data` and `bytes` are whole pages of 4096 bytes,
// private and writable, as of aligned_alloc() or an anonymous mmap(); from 2 MiB on best aligned to as much. No thread
// reads or writes them during this call and during chorus_memory_free(), which ends the registration, and no call uses
// them then. In between they are ordinary memory, except that a child of fork() shares them; they are not unmapped.
// Fails with CHORUS_NOT_SHARED, CHORUS_BAD_ARGUMENT (other memory than that), CHORUS_OUT_OF_MEMORY, CHORUS_STOPPED.
// Any thread.
CHORUS_API chorus_status_t chorus_memory_register(chorus_worker_t* worker, void* data, size_t bytes,
                                                  chorus_memory_t** memory, chorus_error_t* error);

// Returns the first byte; NULL for NULL. Any thread.
CHORUS_API void* chorus_memory_data(chorus_memory_t const* memory);

// Returns the size in bytes; 0 for NULL. Any thread.
CHORUS_API size_t chorus_memory_bytes(chorus_memory_t const* memory);

// Frees allocated memory; ends a registration, whose contents stay. NULL is allowed. No call uses the memory. Any
// thread.
CHORUS_API void chorus_memory_free(chorus_memory_t* memory);

#ifdef __cplusplus
}
#endif

#endif
