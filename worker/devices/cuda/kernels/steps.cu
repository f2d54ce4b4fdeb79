// The optimizer steps on a GPU: one pass over values, gradient and state. Every operation is rounded by itself, in the
// order of the CPU's loops (worker/parameters/optimizers/kernels.inc), so that both give the same bits, except the
// payload of a NaN that arithmetic makes.
#include "worker/devices/cuda/kernels/kernels.hpp"
#include "worker/devices/cuda/kernels/packs.cuh"

namespace chorus::devices::cuda {
namespace {

template <class Number>
struct Numbers {
  explicit Numbers(StepScalars const& c)
      : rate(static_cast<Number>(c.rate)),
        first(static_cast<Number>(c.first)),
        second(static_cast<Number>(c.second)),
        first_rest(static_cast<Number>(c.first_rest)),
        second_rest(static_cast<Number>(c.second_rest)),
        root(static_cast<Number>(c.root)),
        epsilon(static_cast<Number>(c.epsilon)),
        decay(static_cast<Number>(c.decay)),
        scale(static_cast<Number>(c.scale)),
        limit(static_cast<Number>(c.limit)) {}
  Number rate, first, second, first_rest, second_rest, root, epsilon, decay, scale, limit;
};

// A launch's argument: the arrays, and the parameters that are the same for all elements.
template <class Number>
struct Stepping {
  unsigned char* values;
  unsigned char const* gradient;
  unsigned char* master;
  unsigned char* first;
  unsigned char* second;
  std::uint64_t elements;
  bool shapes;
  Numbers<Number> numbers;
};

__device__ float root_of(float x) { return __fsqrt_rn(x); }
__device__ double root_of(double x) { return __dsqrt_rn(x); }

// The methods: w is the value, g the gradient, a and b the state.
struct Sgd {
  static constexpr int states = 0;
  static constexpr bool decays_beside = false;
  template <class V>
  static __device__ void apply(V& w, V g, V&, V&, Numbers<V> const& n) {
    w = w - n.rate * g;
  }
};
struct Momentum {
  static constexpr int states = 1;
  static constexpr bool decays_beside = false;
  template <class V>
  static __device__ void apply(V& w, V g, V& a, V&, Numbers<V> const& n) {
    a = n.first * a + g;
    w = w - n.rate * a;
  }
};
struct Nesterov {
  static constexpr int states = 1;
  static constexpr bool decays_beside = false;
  template <class V>
  static __device__ void apply(V& w, V g, V& a, V&, Numbers<V> const& n) {
    a = n.first * a + g;
    w = w - n.rate * (g + n.first * a);
  }
};
struct Adagrad {
  static constexpr int states = 1;
  static constexpr bool decays_beside = false;
  template <class V>
  static __device__ void apply(V& w, V g, V& a, V&, Numbers<V> const& n) {
    a = a + g * g;
    w = w - n.rate * g / (root_of(a) + n.epsilon);
  }
};
struct Adam {
  static constexpr int states = 2;
  static constexpr bool decays_beside = false;
  template <class V>
  static __device__ void apply(V& w, V g, V& a, V& b, Numbers<V> const& n) {
    a = n.first * a + n.first_rest * g;
    b = n.second * b + n.second_rest * (g * g);
    w = w - n.rate * a / (root_of(b) * n.root + n.epsilon);
  }
};
struct AdamW {
  static constexpr int states = 2;
  static constexpr bool decays_beside = true;
  template <class V>
  static __device__ void apply(V& w, V g, V& a, V& b, Numbers<V> const& n) {
    w = w - n.decay * w;
    Adam::apply(w, g, a, b, n);
  }
};

// Applies clipping and weight decay to a gradient. A NaN stays a NaN.
template <class Rule, class V>
__device__ V shape(V g, V w, Numbers<V> const& n) {
  g = n.scale * g;
  g = g > n.limit ? n.limit : g;
  g = g < -n.limit ? -n.limit : g;
  if constexpr (!Rule::decays_beside) g = g + n.decay * w;
  return g;
}

// Loads `count` adjacent elements of an array in packs, and converts them to the type of computations.
template <class Format, unsigned count>
__device__ void load_run(unsigned char const* base, std::uint64_t at, typename Format::Value (&values)[count]) {
  using Stored = typename Format::Stored;
  constexpr unsigned each = pack_bytes / sizeof(Stored);
  static_assert(count % each == 0);
  auto const* const from = base + at * sizeof(Stored);
  auto const alignment = alignment_of(from);
#pragma unroll
  for (unsigned p = 0; p < count / each; ++p) {
    auto const pack = load_pack(from + p * pack_bytes, alignment);
#pragma unroll
    for (unsigned i = 0; i < each; ++i) values[p * each + i] = Format::load(element<Stored>(pack, i));
  }
}

template <class Format, unsigned count>
__device__ void store_run(unsigned char* base, std::uint64_t at, typename Format::Value const (&values)[count]) {
  using Stored = typename Format::Stored;
  constexpr unsigned each = pack_bytes / sizeof(Stored);
  auto* const to = base + at * sizeof(Stored);
  auto const alignment = alignment_of(to);
#pragma unroll
  for (unsigned p = 0; p < count / each; ++p) {
    Pack pack;
#pragma unroll
    for (unsigned i = 0; i < each; ++i) set_element(pack, i, Format::store(values[p * each + i]));
    store_pack(to + p * pack_bytes, pack, alignment);
  }
}

// The same for one element.
template <class Format, unsigned count>
__device__ void load_one(unsigned char const* base, std::uint64_t at, typename Format::Value (&values)[count]) {
  static_assert(count == 1);
  values[0] = Format::load(reinterpret_cast<typename Format::Stored const*>(base)[at]);
}
template <class Format, unsigned count>
__device__ void store_one(unsigned char* base, std::uint64_t at, typename Format::Value const (&values)[count]) {
  static_assert(count == 1);
  reinterpret_cast<typename Format::Stored*>(base)[at] = Format::store(values[0]);
}

// A step for values of one format. Wide is the format of computations, Pushed that of the gradient.
template <class Rule, class Values, class Wide, class Pushed>
struct Stepper {
  using V = typename Wide::Value;
  static constexpr bool has_master = !is_same<Values, Wide>;
  static constexpr unsigned elements_per_pack = pack_bytes / sizeof(typename Values::Stored);

  Stepping<V> const& s;

  template <unsigned count>
  __device__ void step(std::uint64_t at) const {
    V w[count], g[count], a[count] = {}, b[count] = {};
    auto* const exact = has_master ? s.master : s.values;
    if constexpr (count == 1) {
      load_one<Wide>(exact, at, w);
      load_one<Pushed>(s.gradient, at, g);
      if constexpr (Rule::states > 0) load_one<Wide>(s.first, at, a);
      if constexpr (Rule::states > 1) load_one<Wide>(s.second, at, b);
    } else {
      load_run<Wide>(exact, at, w);
      load_run<Pushed>(s.gradient, at, g);
      if constexpr (Rule::states > 0) load_run<Wide>(s.first, at, a);
      if constexpr (Rule::states > 1) load_run<Wide>(s.second, at, b);
    }
    if (s.shapes)
#pragma unroll
      for (unsigned i = 0; i < count; ++i) g[i] = shape<Rule>(g[i], w[i], s.numbers);
#pragma unroll
    for (unsigned i = 0; i < count; ++i) Rule::apply(w[i], g[i], a[i], b[i], s.numbers);
    if constexpr (count == 1) {
      if constexpr (Rule::states > 0) store_one<Wide>(s.first, at, a);
      if constexpr (Rule::states > 1) store_one<Wide>(s.second, at, b);
      if constexpr (has_master) store_one<Wide>(s.master, at, w);
      store_one<Values>(s.values, at, w);
    } else {
      if constexpr (Rule::states > 0) store_run<Wide>(s.first, at, a);
      if constexpr (Rule::states > 1) store_run<Wide>(s.second, at, b);
      if constexpr (has_master) store_run<Wide>(s.master, at, w);
      store_run<Values>(s.values, at, w);
    }
  }

  // Number of elements before the values are aligned.
  __device__ std::uint64_t head() const {
    auto const misfit = static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(s.values)) & (pack_bytes - 1);
    std::uint64_t const elements = (pack_bytes - misfit) % pack_bytes / sizeof(typename Values::Stored);
    return elements < s.elements ? elements : s.elements;
  }

  __device__ void run() const {
    auto const thread = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
    auto const threads = std::uint64_t{gridDim.x} * blockDim.x;
    auto const before = head();
    auto const packs = (s.elements - before) / elements_per_pack;
    for (auto p = thread; p < packs; p += threads) step<elements_per_pack>(before + p * elements_per_pack);
    auto const after = before + packs * elements_per_pack;
    if (thread < before) step<1>(thread);
    if (after + thread < s.elements) step<1>(after + thread);
  }
};

template <class Rule, class Values, class Wide, class Pushed>
__global__ void __launch_bounds__(threads_per_block)
    step_kernel(__grid_constant__ Stepping<typename Wide::Value> const stepping) {
  Stepper<Rule, Values, Wide, Pushed>{stepping}.run();
}

template <class Rule, class Values, class Wide, class Pushed>
int launch(StepOrder const& order, unsigned blocks_max, void* stream) {
  using V = typename Wide::Value;
  auto const bytes = [](std::byte const* at) { return reinterpret_cast<unsigned char const*>(at); };
  auto const own = [](std::byte* at) { return reinterpret_cast<unsigned char*>(at); };
  Stepping<V> argument{own(order.values), bytes(order.gradient), own(order.master),     own(order.first),
                       own(order.second), order.elements,        order.shapes_gradient, Numbers<V>(order.scalars)};
  auto const packs = order.elements / Stepper<Rule, Values, Wide, Pushed>::elements_per_pack + 1;
  auto const wanted = (packs + threads_per_block - 1) / threads_per_block;
  auto const blocks = wanted < blocks_max ? static_cast<unsigned>(wanted) : blocks_max;
  void* pointers[] = {&argument};
  auto const* const kernel = reinterpret_cast<void const*>(&step_kernel<Rule, Values, Wide, Pushed>);
  return static_cast<int>(
      cudaLaunchKernel(kernel, dim3(blocks), dim3(threads_per_block), pointers, 0, static_cast<cudaStream_t>(stream)));
}

template <class Rule>
int launch_method(StepOrder const& order, unsigned blocks_max, void* stream) {
  using F64 = Plain<double>;
  using F32 = Plain<float>;
  switch (order.dtype) {
    case Dtype::f64:
      return launch<Rule, F64, F64, F64>(order, blocks_max, stream);
    case Dtype::f32:
      return launch<Rule, F32, F32, F32>(order, blocks_max, stream);
    case Dtype::f16:
      return order.wide_gradient ? launch<Rule, Half, F32, F32>(order, blocks_max, stream)
                                 : launch<Rule, Half, F32, Half>(order, blocks_max, stream);
    case Dtype::bf16:
      return order.wide_gradient ? launch<Rule, Brain, F32, F32>(order, blocks_max, stream)
                                 : launch<Rule, Brain, F32, Brain>(order, blocks_max, stream);
    default:
      return -1;
  }
}

}  // namespace

int launch_step(StepOrder const& order, unsigned blocks_max, void* stream) {
  if (order.elements == 0) return 0;
  switch (order.method) {
    case StepMethod::sgd:
      return launch_method<Sgd>(order, blocks_max, stream);
    case StepMethod::momentum:
      return launch_method<Momentum>(order, blocks_max, stream);
    case StepMethod::nesterov:
      return launch_method<Nesterov>(order, blocks_max, stream);
    case StepMethod::adagrad:
      return launch_method<Adagrad>(order, blocks_max, stream);
    case StepMethod::adam:
      return launch_method<Adam>(order, blocks_max, stream);
    case StepMethod::adamw:
      return launch_method<AdamW>(order, blocks_max, stream);
  }
  return -1;
}

}  // namespace chorus::devices::cuda
