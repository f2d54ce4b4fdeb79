// An asymmetric memory fence between processes: membarrier(2). The writer writes and then checks whether the reader
// sleeps; the reader announces its sleep and then checks once more for data. Sleeps are rare. So the reader
// pays for a fence on all processors, and the writer needs none on its fast path.
#pragma once

namespace chorus::memory {

// Registers this process: membarrier_fence() of any process fences it from now on. False if the kernel cannot do that.
[[nodiscard]] bool take_part_in_membarrier_fences();

// A full memory fence on this thread and on all threads of the registered processes. Takes some microseconds.
void membarrier_fence();

}  // namespace chorus::memory
