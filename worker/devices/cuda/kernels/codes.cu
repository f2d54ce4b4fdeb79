// Conversions between floats and their codes on a GPU, with the bits of the CPU's (worker/devices/block_kernels.inc),
// except the payload of a NaN in bf16 and f16. Compiled without contraction of products and sums, with subnormal
// numbers and exact division.
//
// A block of codes is the work of one warp: each lane has the elements lane, lane + 32, ... of it.
#include "worker/devices/cuda/kernels/kernels.hpp"
#include "worker/devices/cuda/kernels/packs.cuh"

namespace chorus::devices::cuda {
namespace {

constexpr unsigned lanes = 32;
constexpr unsigned rounds = block_bytes / lanes;
constexpr std::uint32_t magnitude_bits = 0x7fffffffu;
constexpr std::uint32_t largest_finite_bits = 0x7f7fffffu;
constexpr std::uint32_t quiet_nan_bits = 0x7fc00000u;
constexpr float smallest_scale = 0x1p-126f;  // blocks with a smaller one are sent as zeros

// Integers from -127 to 127; -128 is NaN.
struct Int8Code {
  static constexpr float largest = 127;
  static constexpr std::uint8_t nan = 0x80;
  // |scaled| is at most `largest`. The sum rounds to nearest even.
  static __device__ std::uint8_t encode(float scaled) {
    return static_cast<std::uint8_t>(__float_as_uint(scaled + 0x1.8p23f));
  }
  static __device__ float decode(std::uint8_t code, float scale) {
    auto const value = static_cast<float>(static_cast<std::int8_t>(code)) * scale;
    return code == nan ? __uint_as_float(quiet_nan_bits) : value;
  }
};

// Sign, four bits of exponent with the bias 7, three of mantissa; all ones are NaN, and nothing is infinite.
struct Fp8Code {
  static constexpr float largest = 448;
  static constexpr std::uint8_t nan = 0x7f;
  static __device__ std::uint8_t encode(float scaled) {
    auto const bits = __float_as_uint(scaled);
    auto const rest = bits & magnitude_bits;
    // The sum rounds a subnormal result to nearest even at its lowest bit, 2^-9.
    auto const tiny = __float_as_uint(__uint_as_float(rest) + 0x1p14f) - __float_as_uint(0x1p14f);
    auto const normal = (rest - (120u << 23) + 0x7ffffu + ((rest >> 20) & 1u)) >> 20;
    return static_cast<std::uint8_t>(((bits >> 24) & 0x80u) | (rest < (121u << 23) ? tiny : normal));
  }
  static __device__ float decode(std::uint8_t code, float scale) {
    std::uint32_t const rest = code & 0x7fu;
    auto const tiny = static_cast<float>(rest) * 0x1p-9f;
    auto const normal = __uint_as_float((rest << 20) + (120u << 23));
    auto const magnitude = (rest <= 7 ? tiny : normal) * scale;
    auto const value = __uint_as_float(__float_as_uint(magnitude) | (code & 0x80u) << 24);
    return rest == nan ? __uint_as_float(quiet_nan_bits) : value;
  }
};

__device__ std::uint32_t largest_of_warp(std::uint32_t mine) {
  for (unsigned apart = lanes / 2; apart != 0; apart /= 2) {
    auto const other = __shfl_xor_sync(~0u, mine, apart);
    mine = other > mine ? other : mine;
  }
  return mine;
}

struct Coding {
  unsigned char* to;
  unsigned char const* from;
  std::uint64_t elements;
};

template <class Format>
__device__ float loaded(unsigned char const* from, std::uint64_t i) {
  return static_cast<float>(Format::load(reinterpret_cast<typename Format::Stored const*>(from)[i]));
}
template <class Format>
__device__ void store(unsigned char* to, std::uint64_t i, float value) {
  reinterpret_cast<typename Format::Stored*>(to)[i] = Format::store(static_cast<typename Format::Value>(value));
}

template <class Code, class Format>
__device__ void encode_block(Coding const& a, std::uint64_t block, unsigned lane) {
  auto const first = block * block_codes;
  float values[rounds];
  std::uint32_t largest = 0;
  for (unsigned r = 0; r < rounds; ++r) {
    auto const at = r * lanes + lane;
    values[r] = at < block_codes && first + at < a.elements ? loaded<Format>(a.from, first + at) : 0;
    auto const rest = __float_as_uint(values[r]) & magnitude_bits;
    if (rest <= largest_finite_bits && rest > largest) largest = rest;
  }
  auto const magnitude = __uint_as_float(largest_of_warp(largest));
  auto scale = magnitude / Code::largest;
  // Rounded down where the largest code would otherwise become an infinity.
  if (scale * Code::largest > __uint_as_float(largest_finite_bits)) scale = __uint_as_float(__float_as_uint(scale) - 1);
  bool const is_sent = scale >= smallest_scale;
  auto const inverse = is_sent ? Code::largest / magnitude : 0;
  if (!is_sent) scale = 0;
  auto* const codes = a.to + block * block_bytes;
  for (unsigned r = 0; r < rounds; ++r) {
    auto const at = r * lanes + lane;
    if (at >= block_codes) continue;
    bool const is_finite = (__float_as_uint(values[r]) & magnitude_bits) <= largest_finite_bits;
    codes[at] = is_finite ? Code::encode(values[r] * inverse) : Code::nan;
  }
  if (lane == 0) *reinterpret_cast<float*>(codes + block_codes) = scale;
}

template <class Code, class Format>
__device__ void decode_block(Coding const& a, std::uint64_t block, unsigned lane) {
  auto const first = block * block_codes;
  auto const* const codes = a.from + block * block_bytes;
  auto const scale = *reinterpret_cast<float const*>(codes + block_codes);
  for (unsigned r = 0; r < rounds; ++r) {
    auto const at = r * lanes + lane;
    if (at < block_codes && first + at < a.elements) store<Format>(a.to, first + at, Code::decode(codes[at], scale));
  }
}

template <class Code, class Format, bool decodes>
__global__ void __launch_bounds__(threads_per_block) block_kernel(__grid_constant__ Coding const a) {
  auto const blocks = (a.elements + block_codes - 1) / block_codes;
  auto const thread = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  auto const warps = std::uint64_t{gridDim.x} * (blockDim.x / lanes);
  for (auto block = thread / lanes; block < blocks; block += warps) {
    if constexpr (decodes)
      decode_block<Code, Format>(a, block, threadIdx.x % lanes);
    else
      encode_block<Code, Format>(a, block, threadIdx.x % lanes);
  }
}

template <class From, class To>
__global__ void __launch_bounds__(threads_per_block) element_kernel(__grid_constant__ Coding const a) {
  auto const threads = std::uint64_t{gridDim.x} * blockDim.x;
  for (auto i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < a.elements; i += threads)
    store<To>(a.to, i, loaded<From>(a.from, i));
}

using Kernel = void (*)(Coding const);

struct Found {
  Kernel kernel = nullptr;
  unsigned elements_per_thread = 1;
};

template <class Code, class Format>
Found of_blocks(bool decodes) {
  return {decodes ? &block_kernel<Code, Format, true> : &block_kernel<Code, Format, false>, rounds};
}

template <class Code>
Found find_blocks(CodeOrder const& order) {
  switch (order.dtype) {
    case Dtype::f64:
      return of_blocks<Code, Plain<double>>(order.decodes);
    case Dtype::f32:
      return of_blocks<Code, Plain<float>>(order.decodes);
    case Dtype::f16:
      return of_blocks<Code, Half>(order.decodes);
    case Dtype::bf16:
      return of_blocks<Code, Brain>(order.decodes);
    default:
      return {};
  }
}

template <class Code>
Found find_halves(CodeOrder const& order) {
  switch (order.dtype) {
    case Dtype::f64:
      return {order.decodes ? &element_kernel<Code, Plain<double>> : &element_kernel<Plain<double>, Code>};
    case Dtype::f32:
      return {order.decodes ? &element_kernel<Code, Plain<float>> : &element_kernel<Plain<float>, Code>};
    default:
      return {};
  }
}

Found find(CodeOrder const& order) {
  switch (order.format) {
    case WireFormat::bf16:
      return find_halves<Brain>(order);
    case WireFormat::f16:
      return find_halves<Half>(order);
    case WireFormat::int8:
      return find_blocks<Int8Code>(order);
    case WireFormat::fp8_e4m3:
      return find_blocks<Fp8Code>(order);
  }
  return {};
}

}  // namespace

int launch_code(CodeOrder const& order, unsigned blocks_max, void* stream) {
  auto const found = find(order);
  if (found.kernel == nullptr) return -1;
  if (order.elements == 0) return 0;
  Coding argument{reinterpret_cast<unsigned char*>(order.to), reinterpret_cast<unsigned char const*>(order.from),
                  order.elements};
  auto const wanted = order.elements / (threads_per_block * found.elements_per_thread) + 1;
  auto const blocks = wanted < blocks_max ? static_cast<unsigned>(wanted) : blocks_max;
  void* pointers[] = {&argument};
  return static_cast<int>(cudaLaunchKernel(reinterpret_cast<void const*>(found.kernel), dim3(blocks),
                                           dim3(threads_per_block), pointers, 0, static_cast<cudaStream_t>(stream)));
}

}  // namespace chorus::devices::cuda
