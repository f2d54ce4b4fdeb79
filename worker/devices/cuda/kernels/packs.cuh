// Shared by the kernels: formats of elements, and packs of 16 bytes, which threads load and store. Memory that is not
// aligned to 16 bytes is accessed in the largest pieces that its address allows.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include <cstdint>

namespace chorus::devices::cuda {
namespace {

constexpr unsigned threads_per_block = 256;
constexpr unsigned pack_bytes = 16;

template <class A, class B>
constexpr bool is_same = false;
template <class A>
constexpr bool is_same<A, A> = true;

// Format of an element: its type in memory and its type in computations.
template <class T>
struct Plain {
  using Stored = T;
  using Value = T;
  static __device__ Value load(Stored x) { return x; }
  static __device__ Stored store(Value x) { return x; }
};

struct Half {
  using Stored = std::uint16_t;
  using Value = float;
  static __device__ Value load(Stored h) { return __half2float(__ushort_as_half(h)); }
  static __device__ Stored store(Value x) { return __half_as_ushort(__float2half_rn(x)); }
};

struct Brain {
  using Stored = std::uint16_t;
  using Value = float;
  static __device__ Value load(Stored b) { return __uint_as_float(static_cast<std::uint32_t>(b) << 16); }
  static __device__ Stored store(Value x) { return __bfloat16_as_ushort(__float2bfloat16_rn(x)); }
};

// 16 bytes in registers.
union Pack {
  uint4 quad;
  std::uint64_t longs[2];
  std::uint32_t words[4];
  std::uint16_t shorts[8];
  std::uint8_t bytes[16];
};

template <class T>
__device__ T element(Pack const& pack, unsigned i) {
  static_assert(sizeof(T) <= 8);
  T value;
  if constexpr (sizeof(T) == 8) {
    auto const raw = pack.longs[i];
    memcpy(&value, &raw, 8);
  }
  if constexpr (sizeof(T) == 4) {
    auto const raw = pack.words[i];
    memcpy(&value, &raw, 4);
  }
  if constexpr (sizeof(T) == 2) {
    auto const raw = pack.shorts[i];
    memcpy(&value, &raw, 2);
  }
  if constexpr (sizeof(T) == 1) {
    auto const raw = pack.bytes[i];
    memcpy(&value, &raw, 1);
  }
  return value;
}

template <class T>
__device__ void set_element(Pack& pack, unsigned i, T value) {
  if constexpr (sizeof(T) == 8) memcpy(&pack.longs[i], &value, 8);
  if constexpr (sizeof(T) == 4) memcpy(&pack.words[i], &value, 4);
  if constexpr (sizeof(T) == 2) memcpy(&pack.shorts[i], &value, 2);
  if constexpr (sizeof(T) == 1) memcpy(&pack.bytes[i], &value, 1);
}

__device__ unsigned alignment_of(void const* at) {
  auto const misfit = static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(at)) & (pack_bytes - 1);
  return misfit == 0 ? pack_bytes : misfit & (0u - misfit);
}

// The alignment is the same for all threads: no warp diverges.
__device__ Pack load_pack(unsigned char const* at, unsigned alignment) {
  Pack pack;
  if (alignment == 16) {
    pack.quad = *reinterpret_cast<uint4 const*>(at);
  } else if (alignment == 8) {
    for (unsigned i = 0; i < 2; ++i) pack.longs[i] = reinterpret_cast<std::uint64_t const*>(at)[i];
  } else if (alignment == 4) {
    for (unsigned i = 0; i < 4; ++i) pack.words[i] = reinterpret_cast<std::uint32_t const*>(at)[i];
  } else if (alignment == 2) {
    for (unsigned i = 0; i < 8; ++i) pack.shorts[i] = reinterpret_cast<std::uint16_t const*>(at)[i];
  } else {
    for (unsigned i = 0; i < 16; ++i) pack.bytes[i] = at[i];
  }
  return pack;
}

__device__ void store_pack(unsigned char* at, Pack const& pack, unsigned alignment) {
  if (alignment == 16) {
    *reinterpret_cast<uint4*>(at) = pack.quad;
  } else if (alignment == 8) {
    for (unsigned i = 0; i < 2; ++i) reinterpret_cast<std::uint64_t*>(at)[i] = pack.longs[i];
  } else if (alignment == 4) {
    for (unsigned i = 0; i < 4; ++i) reinterpret_cast<std::uint32_t*>(at)[i] = pack.words[i];
  } else if (alignment == 2) {
    for (unsigned i = 0; i < 8; ++i) reinterpret_cast<std::uint16_t*>(at)[i] = pack.shorts[i];
  } else {
    for (unsigned i = 0; i < 16; ++i) at[i] = pack.bytes[i];
  }
}

}  // namespace
}  // namespace chorus::devices::cuda
