// The reductions on a GPU: n sources into m destinations in one pass, in the order and with the roundings of the CPU's
// loops (worker/devices/kernels.inc), so that both give the same bits. Compiled without contraction of a product and a
// sum, with denormal numbers and exact division. Of a NaN that arithmetic makes, the payload is the processor's own.
//
// Every thread moves packs of 16 bytes, several at a time and a grid apart, so that enough of them are under way to
// fill the memory's bandwidth.
#include "worker/devices/cuda/kernels.hpp"
#include "worker/devices/cuda/packs.cuh"

namespace chorus::devices::cuda {
namespace {

constexpr unsigned packs_at_once = 4;

// Sums and products of integers come in unsigned types, at least 32 bits wide: they wrap.
struct Sum {
  static constexpr bool divides = false;
  template <class T>
  static __device__ T apply(T a, T b) {
    return static_cast<T>(a + b);
  }
};
struct Prod {
  static constexpr bool divides = false;
  template <class T>
  static __device__ T apply(T a, T b) {
    if constexpr (is_same<T, std::uint16_t> || is_same<T, std::uint8_t>)
      return static_cast<T>(static_cast<std::uint32_t>(a) * static_cast<std::uint32_t>(b));
    else
      return a * b;
  }
};
// Signed integers add as unsigned ones do, and divide as what they are.
struct Avg {
  static constexpr bool divides = true;
  static __device__ float apply(float a, float b) { return a + b; }
  static __device__ double apply(double a, double b) { return a + b; }
  template <class T>
  static __device__ T apply(T a, T b) {
    if constexpr (sizeof(T) == 8)
      return static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
    else
      return static_cast<T>(static_cast<std::uint32_t>(a) + static_cast<std::uint32_t>(b));
  }
};
// `x != x` is true for a NaN only; a NaN on the right fails the comparison and is taken.
struct Min {
  static constexpr bool divides = false;
  template <class T>
  static __device__ T apply(T a, T b) {
    return (a < b) || (a != a) ? a : b;
  }
};
struct Max {
  static constexpr bool divides = false;
  template <class T>
  static __device__ T apply(T a, T b) {
    return (a > b) || (a != a) ? a : b;
  }
};
struct Band {
  static constexpr bool divides = false;
  template <class T>
  static __device__ T apply(T a, T b) {
    return static_cast<T>(a & b);
  }
};
struct Bor {
  static constexpr bool divides = false;
  template <class T>
  static __device__ T apply(T a, T b) {
    return static_cast<T>(a | b);
  }
};
struct Bxor {
  static constexpr bool divides = false;
  template <class T>
  static __device__ T apply(T a, T b) {
    return static_cast<T>(a ^ b);
  }
};

template <class T>
__device__ T divided(T x, std::uint32_t divisor) {
  if constexpr (is_same<T, float> || is_same<T, double>)
    return x / static_cast<T>(divisor);
  else if constexpr (T(-1) < T(0))
    return static_cast<T>(static_cast<std::int64_t>(x) / static_cast<std::int64_t>(divisor));
  else
    return static_cast<T>(static_cast<std::uint64_t>(x) / divisor);
}

template <class Op, class Format>
struct Folder {
  using Stored = typename Format::Stored;
  using Value = typename Format::Value;
  static constexpr unsigned elements_per_pack = pack_bytes / sizeof(Stored);
  static constexpr bool is_half = !is_same<Stored, Value>;
  static constexpr unsigned at_once = sizeof(Stored) == 1 ? packs_at_once / 2 : packs_at_once;

  FoldArguments const& a;

  __device__ Value source_element(unsigned s, std::uint64_t i) const {
    if constexpr (is_half)
      if (s == 0 && a.wide_source) return static_cast<float const*>(a.sources[0])[i];
    return Format::load(static_cast<Stored const*>(a.sources[s])[i]);
  }

  __device__ void one_element(std::uint64_t i) const {
    auto value = source_element(0, i);
    for (unsigned s = 1; s < a.source_count; ++s) value = Op::apply(value, source_element(s, i));
    if constexpr (Op::divides)
      if (a.divisor > 1) value = divided(value, a.divisor);
    for (unsigned d = 0; d < a.destination_count; ++d) {
      if constexpr (is_half)
        if (a.wide_results) {
          static_cast<float*>(a.destinations[d])[i] = value;
          continue;
        }
      static_cast<Stored*>(a.destinations[d])[i] = Format::store(value);
    }
  }

  // The elements of source s that begin at `at`, one pack.
  __device__ void load(unsigned s, std::uint64_t at, Value (&values)[elements_per_pack]) const {
    if constexpr (is_half)
      if (s == 0 && a.wide_source) {
        auto const* const from = static_cast<unsigned char const*>(a.sources[0]) + at * sizeof(float);
        auto const alignment = alignment_of(from);
        auto const low = load_pack(from, alignment), high = load_pack(from + pack_bytes, alignment);
#pragma unroll
        for (unsigned i = 0; i < 4; ++i) {
          values[i] = element<float>(low, i);
          values[i + 4] = element<float>(high, i);
        }
        return;
      }
    auto const* const from = static_cast<unsigned char const*>(a.sources[s]) + at * sizeof(Stored);
    auto const pack = load_pack(from, alignment_of(from));
#pragma unroll
    for (unsigned i = 0; i < elements_per_pack; ++i) values[i] = Format::load(element<Stored>(pack, i));
  }

  __device__ void store(unsigned d, std::uint64_t at, Value const (&values)[elements_per_pack]) const {
    if constexpr (is_half)
      if (a.wide_results) {
        Pack low, high;
#pragma unroll
        for (unsigned i = 0; i < 4; ++i) {
          set_element(low, i, values[i]);
          set_element(high, i, values[i + 4]);
        }
        auto* const to = static_cast<unsigned char*>(a.destinations[d]) + at * sizeof(float);
        auto const alignment = alignment_of(to);
        store_pack(to, low, alignment);
        store_pack(to + pack_bytes, high, alignment);
        return;
      }
    Pack pack;
#pragma unroll
    for (unsigned i = 0; i < elements_per_pack; ++i) set_element(pack, i, Format::store(values[i]));
    auto* const to = static_cast<unsigned char*>(a.destinations[d]) + at * sizeof(Stored);
    store_pack(to, pack, alignment_of(to));
  }

  // The packs `first`, first + apart, ..., all of which exist.
  template <unsigned count>
  __device__ void packs(std::uint64_t head, std::uint64_t first, std::uint64_t apart) const {
    Value sums[count][elements_per_pack];
#pragma unroll
    for (unsigned p = 0; p < count; ++p) load(0, head + (first + p * apart) * elements_per_pack, sums[p]);
    for (unsigned s = 1; s < a.source_count; ++s) {
      Value others[count][elements_per_pack];
#pragma unroll
      for (unsigned p = 0; p < count; ++p) load(s, head + (first + p * apart) * elements_per_pack, others[p]);
#pragma unroll
      for (unsigned p = 0; p < count; ++p)
#pragma unroll
        for (unsigned i = 0; i < elements_per_pack; ++i) sums[p][i] = Op::apply(sums[p][i], others[p][i]);
    }
    if constexpr (Op::divides)
      if (a.divisor > 1)
#pragma unroll
        for (unsigned p = 0; p < count; ++p)
#pragma unroll
          for (unsigned i = 0; i < elements_per_pack; ++i) sums[p][i] = divided(sums[p][i], a.divisor);
    for (unsigned d = 0; d < a.destination_count; ++d)
#pragma unroll
      for (unsigned p = 0; p < count; ++p) store(d, head + (first + p * apart) * elements_per_pack, sums[p]);
  }

  // Elements before the first destination is aligned.
  __device__ std::uint64_t head() const {
    bool const wide = is_half && a.wide_results;
    auto const size = wide ? static_cast<unsigned>(sizeof(float)) : static_cast<unsigned>(sizeof(Stored));
    auto const misfit = static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(a.destinations[0])) & (pack_bytes - 1);
    std::uint64_t const elements = (pack_bytes - misfit) % pack_bytes / size;
    return elements < a.elements ? elements : a.elements;
  }

  __device__ void run() const {
    auto const thread = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
    auto const threads = std::uint64_t{gridDim.x} * blockDim.x;
    auto const before = head();
    auto const count = (a.elements - before) / elements_per_pack;
    auto p = thread;
    for (; p + (at_once - 1) * threads < count; p += at_once * threads) packs<at_once>(before, p, threads);
    for (; p < count; p += threads) packs<1>(before, p, threads);
    auto const after = before + count * elements_per_pack;
    if (thread < before) one_element(thread);
    if (after + thread < a.elements) one_element(after + thread);
  }
};

template <class Op, class Format>
__global__ void __launch_bounds__(threads_per_block) fold_kernel(__grid_constant__ FoldArguments const arguments) {
  Folder<Op, Format>{arguments}.run();
}

using Kernel = void (*)(FoldArguments const);

struct Numbered {
  Kernel kernel;
  unsigned elements_per_pack;
};

template <class Op, class Format>
Numbered numbered() {
  return {fold_kernel<Op, Format>, Folder<Op, Format>::elements_per_pack};
}

// The numbers of ReduceOp.
enum : std::uint8_t { op_sum, op_avg, op_min, op_max, op_prod, op_band, op_bor, op_bxor };

template <class Format>
Numbered of_floats(std::uint8_t op) {
  switch (op) {
    case op_sum:
      return numbered<Sum, Format>();
    case op_avg:
      return numbered<Avg, Format>();
    case op_min:
      return numbered<Min, Format>();
    case op_max:
      return numbered<Max, Format>();
    case op_prod:
      return numbered<Prod, Format>();
  }
  return {};
}

template <class T, class Unsigned>
Numbered of_integers(std::uint8_t op) {
  switch (op) {
    case op_sum:
      return numbered<Sum, Plain<Unsigned>>();
    case op_avg:
      return numbered<Avg, Plain<T>>();
    case op_min:
      return numbered<Min, Plain<T>>();
    case op_max:
      return numbered<Max, Plain<T>>();
    case op_prod:
      return numbered<Prod, Plain<Unsigned>>();
    case op_band:
      return numbered<Band, Plain<Unsigned>>();
    case op_bor:
      return numbered<Bor, Plain<Unsigned>>();
    case op_bxor:
      return numbered<Bxor, Plain<Unsigned>>();
  }
  return {};
}

// In the order of Dtype.
Numbered find(std::uint8_t op, std::uint8_t dtype) {
  switch (dtype) {
    case 0:
      return of_floats<Plain<double>>(op);
    case 1:
      return of_floats<Plain<float>>(op);
    case 2:
      return of_floats<Half>(op);
    case 3:
      return of_floats<Brain>(op);
    case 4:
      return of_integers<std::int64_t, std::uint64_t>(op);
    case 5:
      return of_integers<std::int32_t, std::uint32_t>(op);
    case 6:
      return of_integers<std::int16_t, std::uint16_t>(op);
    case 7:
      return of_integers<std::int8_t, std::uint8_t>(op);
    case 8:
      return of_integers<std::uint64_t, std::uint64_t>(op);
    case 9:
      return of_integers<std::uint32_t, std::uint32_t>(op);
    case 10:
      return of_integers<std::uint16_t, std::uint16_t>(op);
    case 11:
      return of_integers<std::uint8_t, std::uint8_t>(op);
  }
  return {};
}

}  // namespace

int launch_fold(std::uint8_t op, std::uint8_t dtype, FoldArguments const& arguments, unsigned blocks_max,
                void* stream) {
  auto const found = find(op, dtype);
  if (found.kernel == nullptr) return -1;
  if (arguments.elements == 0) return 0;
  auto const packs = arguments.elements / found.elements_per_pack + 1;
  auto const wanted = (packs + threads_per_block - 1) / threads_per_block;
  auto const blocks = wanted < blocks_max ? static_cast<unsigned>(wanted) : blocks_max;
  auto argument = arguments;
  void* pointers[] = {&argument};
  return static_cast<int>(cudaLaunchKernel(reinterpret_cast<void const*>(found.kernel), dim3(blocks),
                                           dim3(threads_per_block), pointers, 0, static_cast<cudaStream_t>(stream)));
}

}  // namespace chorus::devices::cuda
