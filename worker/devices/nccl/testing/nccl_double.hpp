// NCCL for tests: a shared library of the path NCCL_DOUBLE, with those of its functions that are used, over doubles of
// GPUs. It adds from the last rank to the first, so that its sums of floats can be told from others. What it is told
// holds for the process.
#pragma once

namespace chorus::devices::testing {

// "nccl_double_begin": as new. Communicators that are there stay.
using Begin = void();
// "nccl_double_fail": the call after the next `count` ones fails, and no other. -1: none. Calls that ask for the state
// of a communicator count as well.
using FailAfter = void(int count);
// "nccl_double_calls": since it began, or was told to fail.
using Calls = int();
// "nccl_double_jam": collectives that are queued from now on never end, and, if `says` is true, it says so.
using Jam = void(bool says);
// "nccl_double_hold": communicators are not made until it is told to go on.
using Hold = void(bool holds);
// "nccl_double_open": communicators that were made and not ended.
using Open = int();
// "nccl_double_collectives": that have come to their end.
using Collectives = int();
// "nccl_double_stuck": queues that were given up with a collective in them that was not aborted: on a GPU, whoever
// waited for them would hang.
using Stuck = int();

}  // namespace chorus::devices::testing
