// A fence for two processes that one of them pays for: membarrier(2). Of "I write, then look whether you sleep" and "I
// say that I sleep, then look once more whether you have written" only the second is rare; where the sleeper fences the
// processors of both, the writer needs no fence of its own, which would take as long as a twentieth of a small call.
#pragma once

namespace chorus::memory {

// From now on far_fence() of any process fences this one, too. False where the kernel does not do that.
[[nodiscard]] bool take_part_in_far_fences();

// Whatever processes that take part have written before, everybody sees afterwards; and what they read afterwards is
// what this process had written. Some microseconds.
void far_fence();

}  // namespace chorus::memory
