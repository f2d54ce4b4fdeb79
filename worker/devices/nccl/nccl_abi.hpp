// The part of NCCL's C interface that is used here, as NVIDIA documents it. The library is loaded at run time; neither
// its header nor the library is needed to build. A stream is a cudaStream_t.
//
// Source: NVIDIA, "NCCL API" of the NCCL documentation, and nccl.h of NCCL 2, whose numbers have stayed from 2.0 on.
#pragma once

#include <cstddef>

namespace chorus::devices::nccl {

using Return = int;  // ncclResult_t
inline constexpr Return success = 0;
inline constexpr Return unhandled_cuda_error = 1;
inline constexpr Return invalid_argument = 4;
inline constexpr Return in_progress = 7;  // since 2.14

using Communicator = struct ncclComm*;

enum class DataType : int { i8 = 0, u8, i32, u32, i64, u64, f16, f32, f64, bf16 };  // ncclDataType_t
enum class RedOp : int { sum = 0, prod, max, min };                                 // ncclRedOp_t
static_assert(int(DataType::i32) == 2 && int(DataType::u64) == 5 && int(DataType::f32) == 7 &&
              int(DataType::bf16) == 9);
static_assert(int(RedOp::prod) == 1 && int(RedOp::max) == 2 && int(RedOp::min) == 3);

// Function types, with the names that the library exports.
using GetVersion = Return(int* version);                                             // ncclGetVersion
using GetErrorString = char const*(Return);                                          // ncclGetErrorString
using GetLastError = char const*(Communicator);                                      // ncclGetLastError, since 2.13
using CommInitAll = Return(Communicator*, int devices, int const* list);             // ncclCommInitAll
using CommEnd = Return(Communicator);                                                // ncclCommDestroy, ncclCommAbort
using CommGetAsyncError = Return(Communicator, Return* error);                       // ncclCommGetAsyncError
using Group = Return();                                                              // ncclGroupStart, ncclGroupEnd
using Reduce = Return(void const* send, void* receive, std::size_t count, int type,  // ncclReduce
                      int op, int root, Communicator, void* stream);
using Broadcast = Return(void const* send, void* receive, std::size_t count, int type,  // ncclBroadcast
                         int root, Communicator, void* stream);

}  // namespace chorus::devices::nccl
