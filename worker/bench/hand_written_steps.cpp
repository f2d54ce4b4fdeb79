// Compiled without contraction: AVX-512 brings fused operations with it, which round once where two operations round
// twice.
#include "worker/bench/hand_written_steps.hpp"

#if defined(__x86_64__)
#include <immintrin.h>

#include <cmath>
#endif

namespace chorus::bench {

#if defined(__x86_64__)
namespace {

using S = HandWrittenSettings;

// By squaring, as the scalars must have the same bits too.
double power(double base, double exponent) {
  double result = 1;
  for (auto left = static_cast<std::uint64_t>(exponent); left != 0; left /= 2) {
    if (left % 2 != 0) result *= base;
    base *= base;
  }
  return result;
}

struct AdamScalars {
  float rate, root, first, first_rest, second, second_rest, epsilon, shrink;
};
AdamScalars adam_scalars(double step) {
  return {static_cast<float>(S::learning_rate / (1 - power(S::beta1, step))),
          static_cast<float>(1 / std::sqrt(1 - power(S::beta2, step))),
          static_cast<float>(S::beta1),
          static_cast<float>(1 - S::beta1),
          static_cast<float>(S::beta2),
          static_cast<float>(1 - S::beta2),
          static_cast<float>(S::epsilon),
          static_cast<float>(S::learning_rate * S::weight_decay)};
}

// The same loops for registers of 8 and of 16 numbers.
#define CHORUS_STEPS(NAME, TARGET, V, LANES, P)                                                                        \
  TARGET void sgd_##NAME(float* w, float const* g, float*, float*, std::uint64_t n, double) {                          \
    V const rate = P##_set1_ps(static_cast<float>(S::learning_rate));                                                  \
    for (std::uint64_t i = 0; i < n; i += LANES)                                                                       \
      P##_storeu_ps(w + i, P##_sub_ps(P##_loadu_ps(w + i), P##_mul_ps(rate, P##_loadu_ps(g + i))));                    \
  }                                                                                                                    \
  TARGET void momentum_##NAME(float* w, float const* g, float* m, float*, std::uint64_t n, double) {                   \
    V const rate = P##_set1_ps(static_cast<float>(S::learning_rate));                                                  \
    V const mu = P##_set1_ps(static_cast<float>(S::momentum));                                                         \
    for (std::uint64_t i = 0; i < n; i += LANES) {                                                                     \
      V const a = P##_add_ps(P##_mul_ps(mu, P##_loadu_ps(m + i)), P##_loadu_ps(g + i));                                \
      P##_storeu_ps(m + i, a);                                                                                         \
      P##_storeu_ps(w + i, P##_sub_ps(P##_loadu_ps(w + i), P##_mul_ps(rate, a)));                                      \
    }                                                                                                                  \
  }                                                                                                                    \
  TARGET void nesterov_##NAME(float* w, float const* g, float* m, float*, std::uint64_t n, double) {                   \
    V const rate = P##_set1_ps(static_cast<float>(S::learning_rate));                                                  \
    V const mu = P##_set1_ps(static_cast<float>(S::momentum));                                                         \
    for (std::uint64_t i = 0; i < n; i += LANES) {                                                                     \
      V const x = P##_loadu_ps(g + i);                                                                                 \
      V const a = P##_add_ps(P##_mul_ps(mu, P##_loadu_ps(m + i)), x);                                                  \
      P##_storeu_ps(m + i, a);                                                                                         \
      V const ahead = P##_add_ps(x, P##_mul_ps(mu, a));                                                                \
      P##_storeu_ps(w + i, P##_sub_ps(P##_loadu_ps(w + i), P##_mul_ps(rate, ahead)));                                  \
    }                                                                                                                  \
  }                                                                                                                    \
  TARGET void adagrad_##NAME(float* w, float const* g, float* h, float*, std::uint64_t n, double) {                    \
    V const rate = P##_set1_ps(static_cast<float>(S::learning_rate));                                                  \
    V const epsilon = P##_set1_ps(static_cast<float>(S::epsilon));                                                     \
    for (std::uint64_t i = 0; i < n; i += LANES) {                                                                     \
      V const x = P##_loadu_ps(g + i);                                                                                 \
      V const a = P##_add_ps(P##_loadu_ps(h + i), P##_mul_ps(x, x));                                                   \
      P##_storeu_ps(h + i, a);                                                                                         \
      V const update = P##_div_ps(P##_mul_ps(rate, x), P##_add_ps(P##_sqrt_ps(a), epsilon));                           \
      P##_storeu_ps(w + i, P##_sub_ps(P##_loadu_ps(w + i), update));                                                   \
    }                                                                                                                  \
  }                                                                                                                    \
  TARGET void adam_##NAME(float* w, float const* g, float* m, float* v, std::uint64_t n, double step) {                \
    auto const s = adam_scalars(step);                                                                                 \
    for (std::uint64_t i = 0; i < n; i += LANES) {                                                                     \
      V const x = P##_loadu_ps(g + i);                                                                                 \
      V const a =                                                                                                      \
          P##_add_ps(P##_mul_ps(P##_set1_ps(s.first), P##_loadu_ps(m + i)), P##_mul_ps(P##_set1_ps(s.first_rest), x)); \
      V const b = P##_add_ps(P##_mul_ps(P##_set1_ps(s.second), P##_loadu_ps(v + i)),                                   \
                             P##_mul_ps(P##_set1_ps(s.second_rest), P##_mul_ps(x, x)));                                \
      P##_storeu_ps(m + i, a);                                                                                         \
      P##_storeu_ps(v + i, b);                                                                                         \
      V const below = P##_add_ps(P##_mul_ps(P##_sqrt_ps(b), P##_set1_ps(s.root)), P##_set1_ps(s.epsilon));             \
      V const update = P##_div_ps(P##_mul_ps(P##_set1_ps(s.rate), a), below);                                          \
      P##_storeu_ps(w + i, P##_sub_ps(P##_loadu_ps(w + i), update));                                                   \
    }                                                                                                                  \
  }                                                                                                                    \
  TARGET void adamw_##NAME(float* w, float const* g, float* m, float* v, std::uint64_t n, double step) {               \
    auto const s = adam_scalars(step);                                                                                 \
    for (std::uint64_t i = 0; i < n; i += LANES) {                                                                     \
      V const x = P##_loadu_ps(g + i);                                                                                 \
      V const old = P##_loadu_ps(w + i);                                                                               \
      V const a =                                                                                                      \
          P##_add_ps(P##_mul_ps(P##_set1_ps(s.first), P##_loadu_ps(m + i)), P##_mul_ps(P##_set1_ps(s.first_rest), x)); \
      V const b = P##_add_ps(P##_mul_ps(P##_set1_ps(s.second), P##_loadu_ps(v + i)),                                   \
                             P##_mul_ps(P##_set1_ps(s.second_rest), P##_mul_ps(x, x)));                                \
      P##_storeu_ps(m + i, a);                                                                                         \
      P##_storeu_ps(v + i, b);                                                                                         \
      V const below = P##_add_ps(P##_mul_ps(P##_sqrt_ps(b), P##_set1_ps(s.root)), P##_set1_ps(s.epsilon));             \
      V const update = P##_div_ps(P##_mul_ps(P##_set1_ps(s.rate), a), below);                                          \
      P##_storeu_ps(w + i, P##_sub_ps(P##_sub_ps(old, P##_mul_ps(P##_set1_ps(s.shrink), old)), update));               \
    }                                                                                                                  \
  }                                                                                                                    \
  std::vector<HandWrittenStep> steps_##NAME() {                                                                        \
    return {                                                                                                           \
        {"sgd", 2, 1, sgd_##NAME},         {"momentum", 3, 2, momentum_##NAME}, {"nesterov", 3, 2, nesterov_##NAME},   \
        {"adagrad", 3, 2, adagrad_##NAME}, {"adam", 4, 3, adam_##NAME},         {"adamw", 4, 3, adamw_##NAME}};        \
  }

CHORUS_STEPS(avx2, __attribute__((target("avx2"))), __m256, 8, _mm256)
CHORUS_STEPS(avx512, __attribute__((target("avx512f,avx512dq"))), __m512, 16, _mm512)

#undef CHORUS_STEPS

}  // namespace

std::vector<HandWrittenStep> hand_written_steps() {
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq")) return steps_avx512();
  if (__builtin_cpu_supports("avx2")) return steps_avx2();
  return {};
}

#else

std::vector<HandWrittenStep> hand_written_steps() { return {}; }

#endif

}  // namespace chorus::bench
