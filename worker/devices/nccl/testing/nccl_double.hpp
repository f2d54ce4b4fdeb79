// A double of NCCL: a shared library at the path NCCL_DOUBLE with the functions of NCCL that are used, over doubles of
// GPUs. It adds from the last rank to the first, so that its sums of floats differ from those of other code. The
// functions below control it for the whole process.
#pragma once

namespace chorus::devices::testing {

// "nccl_double_begin": resets the double. Existing communicators stay.
using Begin = void();
// "nccl_double_fail": only the call after the next `count` ones fails. -1: none. Queries of a communicator's state
// count as well.
using FailAfter = void(int count);
// "nccl_double_calls": number of calls since the last call of one of the two functions above.
using Calls = int();
// "nccl_double_jam": collectives that are queued from now on never end; if `says` is true, they report an error.
using Jam = void(bool says);
// "nccl_double_hold": communicators are not made until the hold ends.
using Hold = void(bool holds);
// "nccl_double_open": number of communicators that were made and not ended.
using Open = int();
// "nccl_double_collectives": number of collectives that have ended.
using Collectives = int();
// "nccl_double_stuck": number of queues destroyed with a collective that was not aborted: on a GPU, waiting for such a
// queue would hang.
using Stuck = int();

}  // namespace chorus::devices::testing
