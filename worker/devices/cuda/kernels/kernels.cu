// The reductions on a GPU: n sources into m destinations in one pass, in the order and with the rounding of the CPU's
// loops (worker/devices/kernels.inc), so that both give the same bits, except the payload of a NaN that arithmetic
// makes. Compiled without contraction of products and sums, with subnormal numbers and exact division.
//
// Every thread moves packs of 16 bytes, and the grid is as large as the work, which is faster than a grid-stride loop
// (docs/explanation/gpu.md). The common case, all addresses multiples of 16 bytes and nothing wide, has a fast path.
#include "worker/devices/cuda/kernels/kernels.hpp"
#include "worker/devices/cuda/kernels/operations.cuh"
#include "worker/devices/cuda/kernels/packs.cuh"

namespace chorus::devices::cuda {
namespace {

constexpr unsigned blocks_max = 0x7fffffff;  // of a grid

template <class Op, class Stored>
constexpr bool compares = Op::divides && (is_same<Stored, float> || is_same<Stored, double>);
__device__ bool has_same_bits(float a, float b) { return __float_as_uint(a) == __float_as_uint(b); }
__device__ bool has_same_bits(double a, double b) { return __double_as_longlong(a) == __double_as_longlong(b); }

template <class Op, class Format>
struct Reducer {
  using Stored = typename Format::Stored;
  using Value = typename Format::Value;
  static constexpr unsigned elements_per_pack = pack_bytes / sizeof(Stored);
  static constexpr bool is_half = !is_same<Stored, Value>;
  // Packs that a thread has in flight. Narrow elements are computed in 4 bytes: more packs of them would cost
  // registers, and so resident threads.
  static constexpr unsigned at_once = sizeof(Stored) < 4 ? 1 : 2;

  FoldArguments const& a;

  // Applies the weight of source s to an element.
  __device__ Value weighed(unsigned s, Value x) const {
    if constexpr (Op::divides && (is_same<Value, float> || is_same<Value, double>))
      if (a.is_weighted) return x * static_cast<Value>(a.weights[s]);
    return x;
  }
  __device__ void weigh(unsigned s, Value (&values)[elements_per_pack]) const {
#pragma unroll
    for (unsigned i = 0; i < elements_per_pack; ++i) values[i] = weighed(s, values[i]);
  }

  __device__ bool divides() const { return a.divisor > 1 || a.scale != 1; }

  // As in EqualOrQuotient: the sum is not as near to the exact multiple as rounded sums of equal numbers are.
  __device__ bool is_far(Value sum, Value term) const {
    constexpr Value half_ulp = sizeof(Value) == 4 ? Value(0x1p-24) : Value(0x1p-53);
    constexpr Value lost = sizeof(Value) == 4 ? Value(0x1p-126) : Value(0x1p-1022);
    auto const count = static_cast<Value>(a.contributions), difference = sum - term * count;
    return (difference < 0 ? -difference : difference) > (term < 0 ? -term : term) * (count * count * half_ulp) + lost;
  }

  // Divides a sum, or returns the single contribution if as many numbers that equal it have this sum.
  __device__ Value quotient(Value sum, Stored const* single) const {
    if constexpr (compares<Op, Stored>)
      if (single != nullptr) {
        auto const term = weighed(a.single, *single);
        if (is_far(sum, term)) return divided(sum, a.divisor, a.scale);
        auto multiple = term;
        for (unsigned k = 1; k < a.contributions; ++k) multiple += term;
        if (has_same_bits(multiple, sum)) return *single;
      }
    return divided(sum, a.divisor, a.scale);
  }

  __device__ Value source_element(unsigned s, std::uint64_t i) const {
    if constexpr (is_half)
      if (s == 0 && a.wide_source) return weighed(s, static_cast<float const*>(a.sources[0])[i]);
    return weighed(s, Format::load(static_cast<Stored const*>(a.sources[s])[i]));
  }

  __device__ void one_element(std::uint64_t i) const {
    auto value = source_element(0, i);
    for (unsigned s = 1; s < a.source_count; ++s) value = Op::apply(value, source_element(s, i));
    if constexpr (Op::divides)
      if (divides())
        value = quotient(value, a.contributions != 0 ? static_cast<Stored const*>(a.sources[a.single]) + i : nullptr);
    for (unsigned d = 0; d < a.destination_count; ++d) {
      if constexpr (is_half)
        if (a.wide_results) {
          static_cast<float*>(a.destinations[d])[i] = value;
          continue;
        }
      static_cast<Stored*>(a.destinations[d])[i] = Format::store(value);
    }
  }

  // Loads the pack of source s that begins at element `at`.
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
        return weigh(s, values);
      }
    unpack(s, stored_pack(s, at), values);
  }
  __device__ Pack stored_pack(unsigned s, std::uint64_t at) const {
    auto const* const from = static_cast<unsigned char const*>(a.sources[s]) + at * sizeof(Stored);
    return load_pack(from, alignment_of(from));
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

  // Divides the sums of the pack that begins at element `at`.
  __device__ void divide(std::uint64_t at, Value (&values)[elements_per_pack]) const {
    if constexpr (Op::divides) {
      if (!divides()) return;
      if (compares<Op, Stored> && a.contributions != 0) {
        auto const pack = stored_pack(a.single, at);
#pragma unroll
        for (unsigned i = 0; i < elements_per_pack; ++i) {
          auto const single = element<Stored>(pack, i);
          values[i] = quotient(values[i], &single);
        }
        return;
      }
#pragma unroll
      for (unsigned i = 0; i < elements_per_pack; ++i) values[i] = quotient(values[i], nullptr);
    }
  }

  __device__ void unpack(unsigned s, Pack const& pack, Value (&values)[elements_per_pack]) const {
#pragma unroll
    for (unsigned i = 0; i < elements_per_pack; ++i) values[i] = weighed(s, Format::load(element<Stored>(pack, i)));
  }

  // Reduces the packs first, first + apart, ..., all of which exist. Requires FoldArguments::is_plain.
  template <unsigned count>
  __device__ void plain_packs(std::uint64_t first, std::uint64_t apart) const {
    Value sums[count][elements_per_pack];
    Pack packs[count];
#pragma unroll
    for (unsigned p = 0; p < count; ++p) packs[p].quad = static_cast<uint4 const*>(a.sources[0])[first + p * apart];
#pragma unroll
    for (unsigned p = 0; p < count; ++p) unpack(0, packs[p], sums[p]);
    for (unsigned s = 1; s < a.source_count; ++s) {
      auto const* const from = static_cast<uint4 const*>(a.sources[s]) + first;
#pragma unroll
      for (unsigned p = 0; p < count; ++p) packs[p].quad = from[p * apart];
#pragma unroll
      for (unsigned p = 0; p < count; ++p) {
        Value others[elements_per_pack];
        unpack(s, packs[p], others);
#pragma unroll
        for (unsigned i = 0; i < elements_per_pack; ++i) sums[p][i] = Op::apply(sums[p][i], others[i]);
      }
    }
#pragma unroll
    for (unsigned p = 0; p < count; ++p) {
      divide((first + p * apart) * elements_per_pack, sums[p]);
#pragma unroll
      for (unsigned i = 0; i < elements_per_pack; ++i) set_element(packs[p], i, Format::store(sums[p][i]));
    }
    for (unsigned d = 0; d < a.destination_count; ++d)
#pragma unroll
      for (unsigned p = 0; p < count; ++p) static_cast<uint4*>(a.destinations[d])[first + p * apart] = packs[p].quad;
  }

  // Reduces the pack that begins at element `at`, with any alignment.
  __device__ void any_pack(std::uint64_t at) const {
    Value sums[elements_per_pack];
    load(0, at, sums);
    for (unsigned s = 1; s < a.source_count; ++s) {
      Value others[elements_per_pack];
      load(s, at, others);
#pragma unroll
      for (unsigned i = 0; i < elements_per_pack; ++i) sums[i] = Op::apply(sums[i], others[i]);
    }
    divide(at, sums);
    for (unsigned d = 0; d < a.destination_count; ++d) store(d, at, sums);
  }

  // Number of elements before the first destination is aligned.
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
    auto const before = a.is_plain ? 0 : head();
    auto const count = (a.elements - before) / elements_per_pack;
    if (a.is_plain) {
      auto p = thread;
      for (; p + (at_once - 1) * threads < count; p += at_once * threads) plain_packs<at_once>(p, threads);
      for (; p < count; p += threads) plain_packs<1>(p, threads);
    } else {
      for (auto p = thread; p < count; p += threads) any_pack(before + p * elements_per_pack);
    }
    auto const after = before + count * elements_per_pack;
    if (thread < before) one_element(thread);
    if (after + thread < a.elements) one_element(after + thread);
  }
};

template <class Op, class Format>
__global__ void __launch_bounds__(threads_per_block) fold_kernel(__grid_constant__ FoldArguments const arguments) {
  Reducer<Op, Format>{arguments}.run();
}

using Kernel = void (*)(FoldArguments const);

struct Numbered {
  Kernel kernel;
  unsigned elements_per_pack;
  unsigned packs_at_once;
};

template <class Op, class Format>
Numbered numbered() {
  return {fold_kernel<Op, Format>, Reducer<Op, Format>::elements_per_pack, Reducer<Op, Format>::at_once};
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

// Finds the kernel of an operation and dtype, by the numbers of ReduceOp and Dtype.
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

bool is_plain(FoldArguments const& a) {
  std::uintptr_t all = 0;
  for (unsigned s = 0; s < a.source_count; ++s) all |= reinterpret_cast<std::uintptr_t>(a.sources[s]);
  for (unsigned d = 0; d < a.destination_count; ++d) all |= reinterpret_cast<std::uintptr_t>(a.destinations[d]);
  return all % pack_bytes == 0 && !a.wide_source && !a.wide_results;
}

}  // namespace

int launch_fold(std::uint8_t op, std::uint8_t dtype, FoldArguments const& arguments, void* stream) {
  auto const found = find(op, dtype);
  if (found.kernel == nullptr) return -1;
  if (arguments.elements == 0) return 0;
  auto argument = arguments;
  argument.is_plain = is_plain(arguments);
  std::uint64_t const each =
      threads_per_block * found.elements_per_pack * (argument.is_plain ? found.packs_at_once : 1);
  auto const wanted = arguments.elements / each + 1;
  auto const blocks = wanted < blocks_max ? static_cast<unsigned>(wanted) : blocks_max;
  void* pointers[] = {&argument};
  return static_cast<int>(cudaLaunchKernel(reinterpret_cast<void const*>(found.kernel), dim3(blocks),
                                           dim3(threads_per_block), pointers, 0, static_cast<cudaStream_t>(stream)));
}

}  // namespace chorus::devices::cuda
